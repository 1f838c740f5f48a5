// Unpacks the Chromium that the tests drive, and prints where it lies. TMPDIR says where to.
import chromium from "@sparticuz/chromium";

console.log(await chromium.executablePath());
