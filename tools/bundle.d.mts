/** Source of packages: the bundle, which starts faster, or node_modules, with which it is built faster. */
export type Packages = 'bundled' | 'linked'

/** Writes `dist/cli` below `root`, from the sources of a repository; resolves to the paths of its modules. */
export function bundle(root: string, packages: Packages, sources: string): Promise<string[]>
