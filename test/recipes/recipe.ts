import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine } from '../stores/engines.ts'

/** The text of the only block of `language` on a page of `docs/`, whose path is given without `.md`. */
export function addedCode(page: string, language: string): string {
  const [block, ...others] = codeBlocks(page, language)
  if (block === undefined || others.length > 0) throw new Error(`${page}.md has not one block of ${language}`)
  return block
}

/** The texts of all blocks of `language` on such a page. */
export function codeBlocks(page: string, language: string): readonly string[] {
  const text = readFileSync(join(import.meta.dirname, '../../docs', `${page}.md`), 'utf8')
  return [...text.matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms)].flatMap(([, is, code = '']) =>
    is === language ? [code] : [],
  )
}

/** The environment of a gateway on a new database of an engine. */
export async function databaseOf(engine: Engine): Promise<Readonly<Record<string, string>>> {
  const { place } = await engine.database()
  return engine.name === 'SQLite' ? {} : { DATABASE_URL: place }
}
