import type { Fields } from './fields.ts'
import type { Random } from './random.ts'
import { valueMatchingSchema } from './schema-value.ts'
import { titleOf } from './title.ts'
import { wordsOfName } from './tool-needs.ts'

const TITLES = /^(?:title|subject|headline)$/
const SENTENCES =
  /^(?:answer|text|summary|response|message|content|explanation|description|reason|reasoning|result)$/

/** Generates a JSON value that satisfies the schema; `proseText` returns the prose of the model. */
export function jsonReply(schema: Fields, message: string, proseText: () => string, random: Random): unknown {
  return valueMatchingSchema({ type: 'object', ...schema }, message, random, {
    text: (name) => {
      const words = wordsOfName(name)
      if (words.some((word) => SENTENCES.test(word))) return proseText()
      return words.some((word) => TITLES.test(word)) ? titleOf(message) : undefined
    },
    mentions: () => true,
  })
}
