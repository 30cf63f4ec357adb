import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The code that a recipe adds: the text of the only block of `language` on its page. */
export function addedCode(recipe: string, language: string): string {
  const page = readFileSync(join(import.meta.dirname, '../../docs/recipes', `${recipe}.md`), 'utf8')
  const [block, ...others] = [...page.matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms)].filter(
    ([, is]) => is === language,
  )
  if (!block || others.length > 0) throw new Error(`${recipe}.md has not one block of ${language}`)
  return block[2] ?? ''
}
