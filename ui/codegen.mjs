// Types from the server's own descriptions: REST from OpenAPI, GraphQL from its schema and queries.
// Usage: node codegen.mjs OPENAPI.json SCHEMA.graphql [OUT]

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codegen } from "@graphql-codegen/core";
import * as typescript from "@graphql-codegen/typescript";
import * as operations from "@graphql-codegen/typescript-operations";
import { buildSchema, parse } from "graphql";
import openapi, { astToString } from "openapi-typescript";

const [api, schemaFile, out = "src/api"] = process.argv.slice(2);
const queries = new URL("src/api/queries/", import.meta.url).pathname;
const NOTE = "// Made by `make ui-types` from the server's own description; change that instead.\n";

async function rest() {
  const ast = await openapi(JSON.parse(await readFile(api, "utf8")), {
    alphabetize: true,
    defaultNonNullable: false,
  });
  return NOTE + astToString(ast);
}

async function graphql() {
  const names = (await readdir(queries)).filter((name) => name.endsWith(".graphql")).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(queries, name), "utf8")));
  const schema = await readFile(schemaFile, "utf8");
  const config = {
    useTypeImports: true,
    skipTypename: true,
    onlyOperationTypes: true,
    enumsAsTypes: true,
    defaultScalarType: "unknown",
    scalars: { DateTime: "string", Whole: "number", JSON: "Record<string, unknown>" },
  };
  const types = await codegen({
    filename: "graphql.generated.ts",
    schema: parse(schema),
    schemaAst: buildSchema(schema),
    documents: names.map((name, at) => ({ location: name, document: parse(texts[at]) })),
    plugins: [{ typescript: {} }, { operations: {} }],
    pluginMap: { typescript, operations },
    config,
  });
  return NOTE + types + texts.map(document).join("");
}

/** A query as text, which carries the types of what it takes and gives. */
function document(text) {
  const { name, operation } = parse(text).definitions[0];
  const type = name.value + operation[0].toUpperCase() + operation.slice(1);
  const literal = JSON.stringify(text.replaceAll(/\s+/g, " ").trim());
  return `export const ${name.value} = ${literal} as unknown as Document<${type}, ${type}Variables>;\n`;
}

await mkdir(out, { recursive: true });
const marker = "export type Document<Given, Taken> = string & { given?: Given; taken?: Taken };\n";
await writeFile(join(out, "rest.generated.d.ts"), await rest());
await writeFile(join(out, "graphql.generated.ts"), (await graphql()) + marker);
