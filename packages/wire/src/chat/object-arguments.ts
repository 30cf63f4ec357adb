import { RESPONSE_LIMITS, scanObject } from '../json/json-scan.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { Fields } from '../field.ts'

/** Members of a choice with its content, in whole replies and in chunks. */
const MESSAGES = ['message', 'delta'] as const

/** Function of a call, and the path of its arguments. */
interface CalledFunction {
  readonly definition: Record<string, unknown>
  /** Member keys and element indexes, from the root. */
  readonly path: readonly (string | number)[]
}

/**
 * Parses a reply or a chunk. Returns undefined if it is not a JSON object. Arguments that some servers send
 * as an object are replaced by their text as the server wrote it.
 */
export function parseAnswer(text: string): Fields | undefined {
  const answer = parseRecord(text)
  return answer && hasObjectArguments(answer['choices']) ? withTexts(answer, text) : answer
}

/**
 * Reports whether any call has an object as arguments. It allocates nothing, because it runs for every reply.
 */
function hasObjectArguments(choices: unknown): boolean {
  if (!Array.isArray(choices)) return false
  for (const choice of choices) {
    for (const key of MESSAGES) {
      const message = asRecord(asRecord(choice)?.[key])
      if (hasObject(message?.['function_call'])) return true
      const calls = message?.['tool_calls']
      if (!Array.isArray(calls)) continue
      for (const call of calls) if (hasObject(asRecord(call)?.['function'])) return true
    }
  }
  return false
}

function hasObject(definition: unknown): definition is Record<string, unknown> {
  return asRecord(asRecord(definition)?.['arguments']) !== undefined
}

function withTexts(answer: Fields, text: string): Fields {
  const scan = scanned(text)
  for (const { definition, path } of functionsIn(answer['choices'] as readonly unknown[])) {
    const node = scan && nodeAt(scan, path)
    // Replies beyond the scanner's limits lose the order of integer-like keys, and digits.
    definition['arguments'] =
      node === undefined ? JSON.stringify(definition['arguments']) : scan?.textOf(node)
  }
  return answer
}

/** Finds the functions whose arguments are objects. */
function functionsIn(choices: readonly unknown[]): CalledFunction[] {
  return choices.flatMap((choice, i) =>
    MESSAGES.flatMap((key) => {
      const message = asRecord(asRecord(choice)?.[key])
      const calls = message?.['tool_calls']
      const functions = [
        { definition: message?.['function_call'], path: ['function_call'] },
        ...(Array.isArray(calls) ? calls : []).map((call, n) => ({
          definition: asRecord(call)?.['function'],
          path: ['tool_calls', n, 'function'],
        })),
      ]
      return functions.flatMap(({ definition, path }) =>
        hasObject(definition) ? [{ definition, path: ['choices', i, key, ...path, 'arguments'] }] : [],
      )
    }),
  )
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

function nodeAt(scan: ScannedObject, [first, ...rest]: CalledFunction['path']): Node | undefined {
  let node = scan.span(String(first))?.node
  for (const step of rest) {
    if (node === undefined) return undefined
    node = typeof step === 'number' ? scan.elements(node)[step] : scan.memberOf(node, step)
  }
  return node
}
