import { type Fields, fields, list, string } from '../../src/simulator/fields.ts'

/** A model's input, whichever dialect it came in. */
export interface ModelInput {
  /** All text of the user, without tool results. */
  readonly user: string
  /** Tool results so far. */
  readonly results: readonly string[]
  readonly tools: readonly { readonly name: string; readonly schema: Fields }[]
}

/** The model's next turn. */
export interface Turn {
  readonly thinking: string
  readonly text: string
  /** `input` is JSON text. */
  readonly calls: readonly { readonly name: string; readonly input: string }[]
}

/** Content of a file, with a secret word for the model to find. */
export function secret(word: string): string {
  return `The secret word is ${word}, and nobody else knows it.`
}

const SECRET = /The secret word is ([\w-]+),/
const PATH = /\/\S+\.txt/g
/** Names under which coding agents offer the tool that reads a file. */
const READ_TOOL = /^read(?:_?file)?$/i

/**
 * A model that can do one thing: it reads the files that the user names, all in one turn and with the agent's
 * own tool, and then quotes the secret word of each from the tool results. Without such a tool (as in a
 * request for a title) it answers with small talk.
 */
export function nextTurn({ user, results, tools }: ModelInput): Turn {
  if (results.length > 0) {
    const words = results.map((result) => SECRET.exec(result)?.[1])
    const text = words.map((word, at) => (word ? `"${word}"` : `nothing, but: ${results[at]}`)).join(' and ')
    return { thinking: 'Now I know what they say.', text: `The files say ${text}.`, calls: [] }
  }
  const reader = tools.find(({ name }) => READ_TOOL.test(name))
  const paths = [...new Set(user.match(PATH))]
  if (!reader || paths.length === 0) return { thinking: '', text: 'Secrets in two files', calls: [] }
  return {
    thinking: 'The words are in the files, so I have to read them.',
    text: 'I will read both files.',
    calls: paths.map((path) => ({
      name: reader.name,
      input: JSON.stringify({ [pathField(reader.schema)]: path }),
    })),
  }
}

function pathField({ required, properties }: Fields): string {
  const names = [...list(required).map(string), ...Object.keys(fields(properties))]
  return names.find((name) => /path/i.test(name)) ?? 'path'
}

/** Splits a text into pieces, as a model streams them. */
export function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,7}/g) ?? []
}

/** Approximate number of tokens of a text. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / 4)
}
