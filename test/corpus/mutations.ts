import fc from 'fast-check'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import type { Case } from './case.ts'
import { INHERITED, VALUES } from './values.ts'

const REQUESTS = { chat: chatRequests, messages: messagesRequests } as const
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g
const MARKS = ['[', ']', '{', '}', ':', ',']
const TEXTS = [
  ...VALUES,
  ...INHERITED.map((name) => JSON.stringify(name)),
  '"messages"',
  '"type"',
  '"role"',
  '"content"',
]

interface Change {
  readonly kind: 'replace' | 'mark' | 'delete' | 'repeat' | 'move' | 'cut'
  /** Position as a share of the whole, and destination. */
  readonly at: number
  readonly to: number
  readonly text: string
  readonly mark: string
}

const shares = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const changes: fc.Arbitrary<Change> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant('replace' as const) },
    { weight: 2, arbitrary: fc.constantFrom('delete' as const, 'repeat' as const, 'move' as const) },
    { weight: 1, arbitrary: fc.constantFrom('mark' as const, 'cut' as const) },
  ),
  at: shares,
  to: shares,
  text: fc.constantFrom(...TEXTS),
  mark: fc.constantFrom(...MARKS),
})

/** Valid requests with some of their tokens replaced, removed, doubled or moved. */
export function mutations(): fc.Arbitrary<Case> {
  return fc
    .constantFrom('chat' as const, 'messages' as const)
    .chain((protocol) =>
      fc
        .tuple(REQUESTS[protocol](), fc.array(changes, { minLength: 1, maxLength: 4 }))
        .map(([text, all]) => mutated(protocol, text, all)),
    )
}

function mutated(protocol: PairedProtocol, text: string, all: readonly Change[]): Case {
  const tokens = text.replace(/"model":"[^"]*"/, '"model":"◊"').match(TOKEN) ?? []
  for (const change of all) apply(tokens, change)
  const changed = tokens.join('')
  return {
    name: changed,
    protocols: [protocol],
    outcome: isObject(changed) ? 'either' : 'unreadable',
    // The mutation may have changed the model's name.
    statuses: [400, 503],
    body: (model) => changed.replaceAll('◊', model),
  }
}

function apply(tokens: string[], { kind, at, to, text, mark }: Change): void {
  const place = Math.floor(at * tokens.length)
  switch (kind) {
    case 'replace': {
      // Values and names of members; structural characters stay.
      const places = tokens.flatMap((token, i) => (MARKS.includes(token) ? [] : [i]))
      const chosen = places[Math.floor(at * places.length)]
      if (chosen !== undefined)
        tokens[chosen] = tokens[chosen + 1] === ':' && !text.startsWith('"') ? '"x"' : text
      return
    }
    case 'mark':
      return void tokens.splice(place, 1, mark)
    case 'delete':
      return void tokens.splice(place, 1)
    case 'repeat':
      return void tokens.splice(place, 0, ...tokens.slice(place, place + 3))
    case 'move':
      return void tokens.splice(Math.floor(to * tokens.length), 0, ...tokens.splice(place, 3))
    case 'cut':
      return void tokens.splice(place)
  }
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
