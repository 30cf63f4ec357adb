// Prints the notes of this version: its part of CHANGELOG.md, with links that work outside the repository.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The notes of a version; undefined if the changelog has none. */
export function releaseNotes(version) {
  const parts = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m)
  const part = parts.find((text) => text.startsWith(`${version}\n`))
  if (part === undefined) return undefined
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env
  const base = GITHUB_REPOSITORY ? `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/blob/v${version}/` : ''
  return part.slice(version.length).trim().replaceAll('](docs/', `](${base}docs/`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  console.log(releaseNotes(version))
}
