import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env["CARREL_URL"] ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: "../src/carrel/server/web/static",
    emptyOutDir: true,
    assetsDir: "ui",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(
      ["/v1", "/graphql", "/accounts", "/readyz", "/docs", "/openapi.json"].map((at) => [
        at,
        server,
      ]),
    ),
  },
});
