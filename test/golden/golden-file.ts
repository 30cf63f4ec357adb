import { readFileSync, writeFileSync } from 'node:fs'

/** A line `=== gemini ===` begins what the source becomes in that dialect, up to the next such line. */
const HEADING = /^=== (\w+) ===\n/m

/** A source, and what it has to become in other dialects. */
export interface GoldenFile {
  readonly source: string
  readonly targets: readonly { readonly to: string; readonly text: string }[]
}

/** Reads a golden file. The line break before a heading belongs to the heading. Throws if there is no heading. */
export function readGolden(file: string): GoldenFile {
  const [source = '', ...rest] = readFileSync(file, 'utf8').split(HEADING)
  const targets = rest.flatMap((to, at) => (at % 2 === 0 ? [{ to, text: rest[at + 1] ?? '' }] : []))
  if (targets.length === 0) throw new Error(`${file} has no line such as "=== chat ==="`)
  return {
    source: source.slice(0, -1),
    targets: targets.map(({ to, text }, at) => ({
      to,
      text: at < targets.length - 1 ? text.slice(0, -1) : text,
    })),
  }
}

/** Writes a golden file. */
export function writeGolden(file: string, { source, targets }: GoldenFile): void {
  const parts = targets.map(({ to, text }) => `=== ${to} ===\n${text}`)
  writeFileSync(file, [source, ...parts].join('\n'))
}
