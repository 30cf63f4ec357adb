import { generateThinking, prose } from './prose.ts'
import type { Prompt, Tool } from './prompt.ts'
import { type Random, seededRandom } from './random.ts'
import { replySchema, requestedTitle } from './title-and-json-requests.ts'
import { splitIntoTokens } from './tokens.ts'
import { toolCalls } from './tool-calls.ts'
import { paraphraseResults } from './tool-result.ts'
import type { Fields } from './fields.ts'
import { valueMatchingSchema } from './schema-value.ts'
import { titleOf } from './title.ts'
import { wordsOfName } from './argument-kinds.ts'

/** Why the output ended: it was complete, met a stop text, reached the token limit, or called tools. */
export type StopCause = 'done' | 'stop_text' | 'length' | 'tools'

/** Output of a simulated model. In a list of pieces, every string is one token. */
export interface ModelOutput {
  readonly thinking: readonly string[]
  readonly text: readonly string[]
  readonly calls: readonly { readonly tool: Tool; readonly input: readonly string[] }[]
  readonly stopCause: StopCause
  /** The stop text that was met; null if none was. */
  readonly stopText: string | null
  /** Number of generated tokens, thinking included. */
  readonly tokens: number
}

/**
 * Generates the output for a prompt. It only depends on the prompt and the number of the choice, not on
 * streaming.
 */
export function generateOutput(prompt: Prompt, choice = 0): ModelOutput {
  const random = seededRandom(`${prompt.model}\n${choice}\n${prompt.transcript}`)
  const calls = toolCalls(prompt, random)
  const fullText = outputText(prompt, calls.length > 0, random)
  const { text, stopText } = cutAtStop(fullText, prompt.stop)
  const budget = new Budget(prompt.maxTokens)
  const thinking = budget.take(
    prompt.thinks ? splitIntoTokens(generateThinking(prompt.lastUser, random)) : [],
  )
  const textPieces = budget.take(splitIntoTokens(text))
  const callPieces = (stopText === null ? calls : [])
    .map(({ tool, input }) => ({ tool, input: budget.take(splitIntoTokens(input)) }))
    .filter(({ input }) => input.length > 0)
  return {
    thinking,
    text: textPieces,
    calls: callPieces,
    stopCause: end(budget.exceeded, stopText, callPieces.length > 0),
    stopText: budget.exceeded ? null : stopText,
    tokens: budget.used,
  }
}

function end(exceeded: boolean, stopText: string | null, callsTools: boolean): StopCause {
  if (exceeded) return 'length'
  if (stopText !== null) return 'stop_text'
  return callsTools ? 'tools' : 'done'
}

function outputText(prompt: Prompt, callsTools: boolean, random: Random): string {
  if (callsTools) return prompt.announcesTools && prompt.toolChoice === 'auto' ? 'Let me look that up.' : ''
  const { lastUser, results } = prompt
  const schema = replySchema(prompt)
  const proseText = (): string => (results.length > 0 ? paraphraseResults(results) : prose(lastUser, random))
  if (schema) return JSON.stringify(jsonReply(schema, lastUser, proseText, random))
  return requestedTitle(prompt) ?? proseText()
}

function cutAtStop(text: string, stops: readonly string[]): { text: string; stopText: string | null } {
  let found: { at: number; stop: string } | undefined
  for (const stop of stops) {
    const at = stop === '' ? -1 : text.indexOf(stop)
    if (at >= 0 && (!found || at < found.at)) found = { at, stop }
  }
  return found ? { text: text.slice(0, found.at), stopText: found.stop } : { text, stopText: null }
}

class Budget {
  readonly #max: number
  #used = 0
  #exceeded = false

  constructor(max: number) {
    this.#max = max
  }

  get used(): number {
    return this.#used
  }

  get exceeded(): boolean {
    return this.#exceeded
  }

  take(tokens: readonly string[]): string[] {
    const granted = tokens.slice(0, this.#max - this.#used)
    if (granted.length < tokens.length) this.#exceeded = true
    this.#used += granted.length
    return granted
  }
}

const TITLES = /^(?:title|subject|headline)$/
const SENTENCES =
  /^(?:answer|text|summary|response|message|content|explanation|description|reason|reasoning|result)$/

/** Generates a JSON value that satisfies a schema; `proseText` returns prose for it. */
function jsonReply(schema: Fields, message: string, proseText: () => string, random: Random): unknown {
  return valueMatchingSchema({ type: 'object', ...schema }, message, random, {
    text: (name) => {
      const words = wordsOfName(name)
      if (words.some((word) => SENTENCES.test(word))) return proseText()
      return words.some((word) => TITLES.test(word)) ? titleOf(message) : undefined
    },
    mentions: () => true,
  })
}
