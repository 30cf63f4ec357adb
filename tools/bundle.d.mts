/**
 * How packages are included: bundled, which makes the start faster, or linked from node_modules, which makes
 * the build faster.
 */
export type Packages = 'bundled' | 'linked'

/** Options of a bundle. */
export interface BundleOptions {
  /** Paths of further programs. */
  readonly others?: readonly string[]
  /** Takes a third of the CPU time to write. The program is in more files, and its stack traces do not name the sources. */
  readonly brief?: boolean
}

/** Writes `dist/cli` below `root`, from the sources of a repository; resolves to the paths of its modules. */
export function bundle(
  root: string,
  packages: Packages,
  sources: string,
  options?: BundleOptions,
): Promise<string[]>
