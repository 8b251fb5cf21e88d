// Copies the licenses from the root of the repository to the folder from which `npm pack` takes
// them.
//
//     node scripts/licenses.js FOLDER

import { copyFileSync } from "node:fs";
import { join } from "node:path";

const [, , folder] = process.argv;
if (folder === undefined) throw new TypeError("name the package's folder");
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(new URL(`../../${name}`, import.meta.url), join(folder, name));
