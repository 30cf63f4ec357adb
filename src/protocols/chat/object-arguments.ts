import { ANSWER_LIMITS, scanObject } from '../json-scan.ts'
import { asRecord, parseRecord } from '../record.ts'
import type { Node, ScannedObject } from '../scanned-object.ts'
import type { Fields } from './field.ts'

/** A step to a value: the key of a member, or the number of an element. */
type Path = readonly (string | number)[]

/**
 * Parses a reply or a chunk; undefined where it is no JSON object. Some servers send the arguments of a call as an object
 * instead of its text: here they are text, and the very text that the server wrote.
 */
export function parseAnswer(text: string): Fields | undefined {
  const answer = parseRecord(text)
  const objects = answer ? objectArguments(answer) : []
  if (objects.length === 0) return answer
  const scan = scanned(text)
  for (const { definition, path } of objects) {
    const node = scan && nodeAt(scan, path)
    // What is larger than what is scanned loses the order of integer-like keys, and digits.
    definition['arguments'] =
      node === undefined ? JSON.stringify(definition['arguments']) : scan?.textOf(node)
  }
  return answer
}

/** Where arguments are objects: the functions that have them, and the paths to them. */
function objectArguments(answer: Fields): { definition: Record<string, unknown>; path: Path }[] {
  const choices = answer['choices']
  if (!Array.isArray(choices)) return []
  return choices.flatMap((choice, i) =>
    ['message', 'delta'].flatMap((key) => {
      const message = asRecord(asRecord(choice)?.[key])
      const calls = message?.['tool_calls']
      const at: Path = ['choices', i, key]
      const definitions = [
        { definition: asRecord(message?.['function_call']), path: [...at, 'function_call', 'arguments'] },
        ...(Array.isArray(calls) ? calls : []).map((call, n) => ({
          definition: asRecord(asRecord(call)?.['function']),
          path: [...at, 'tool_calls', n, 'function', 'arguments'],
        })),
      ]
      return definitions.flatMap(({ definition, path }) =>
        definition && asRecord(definition['arguments']) ? [{ definition, path }] : [],
      )
    }),
  )
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), ANSWER_LIMITS)
  } catch {
    return undefined
  }
}

function nodeAt(scan: ScannedObject, [first, ...rest]: Path): Node | undefined {
  let node = scan.span(String(first))?.node
  for (const step of rest) {
    if (node === undefined) return undefined
    node = typeof step === 'number' ? scan.elements(node)[step] : scan.memberOf(node, step)
  }
  return node
}
