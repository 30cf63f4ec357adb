import type { Fields } from './fields.ts'
import type { Random } from './random.ts'
import { valueFor } from './schema-value.ts'
import { titleOf } from './title.ts'
import { wordsOfName } from './tool-needs.ts'

const TITLES = /^(?:title|subject|headline)$/
const SENTENCES =
  /^(?:answer|text|summary|response|message|content|explanation|description|reason|reasoning|result)$/

/** Generates a JSON value that satisfies the schema; `said` returns the prose of the model. */
export function jsonReply(schema: Fields, message: string, said: () => string, random: Random): unknown {
  return valueFor({ type: 'object', ...schema }, message, random, {
    text: (name) => {
      const words = wordsOfName(name)
      if (words.some((word) => SENTENCES.test(word))) return said()
      return words.some((word) => TITLES.test(word)) ? titleOf(message) : undefined
    },
    mentions: () => true,
  })
}
