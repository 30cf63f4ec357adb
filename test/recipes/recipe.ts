import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine } from '../stores/engines.ts'

/** The code that a recipe adds: the text of the only block of `language` on its page. */
export function addedCode(recipe: string, language: string): string {
  const [block, ...others] = codeBlocks(recipe, language)
  if (block === undefined || others.length > 0)
    throw new Error(`${recipe}.md has not one block of ${language}`)
  return block
}

/** The texts of all blocks of `language` on the page of a recipe. */
export function codeBlocks(recipe: string, language: string): readonly string[] {
  const page = readFileSync(join(import.meta.dirname, '../../docs/recipes', `${recipe}.md`), 'utf8')
  return [...page.matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms)].flatMap(([, is, text = '']) =>
    is === language ? [text] : [],
  )
}

/** The environment of a gateway on a new database of an engine. */
export async function databaseOf(engine: Engine): Promise<Readonly<Record<string, string>>> {
  const { place } = await engine.database()
  return engine.name === 'SQLite' ? {} : { DATABASE_URL: place }
}
