import { readFileSync } from 'node:fs'

let known: string | undefined

/** The version of this package, such as `0.1.0`. */
export function packageVersion(): string {
  return (known ??= field('../../package.json', 'version'))
}

/** The version and the commit that the running program was built from, such as `0.1.0 (5d23727994c1)`. */
export function versionWithCommit(): string {
  const isBuilt = new URL('.', import.meta.url).pathname.endsWith('/dist/cli/')
  return `${packageVersion()} (${isBuilt ? field('../build.json', 'commit') : 'sources'})`
}

function field(path: string, name: string): string {
  const content = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as Record<string, unknown>
  return String(content[name])
}
