/**
 * How packages are included: bundled, which makes the start faster, or linked from node_modules, which makes
 * the build faster.
 */
export type Packages = 'bundled' | 'linked'

/**
 * Writes `dist/cli` below `root`, from the sources of a repository and `others`, paths of further programs; resolves to the paths of
 * its modules.
 */
export function bundle(
  root: string,
  packages: Packages,
  sources: string,
  others?: readonly string[],
): Promise<string[]>
