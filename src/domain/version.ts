import { readFileSync } from 'node:fs'

let known: string | undefined

/** The version of this package, read at first use. */
export function version(): string {
  return (known ??= read())
}

function read(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}
