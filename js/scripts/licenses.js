// Copies the licenses from the root of the repository to the folder from which `npm pack` takes
// them.
//
//     node scripts/licenses.js

import { copyFileSync } from "node:fs";

const root = new URL("../", import.meta.url);
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(new URL(`../${name}`, root), new URL(name, root));
