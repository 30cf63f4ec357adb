import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { knownAnswers } from '../../../test/fixtures/known-answers.ts'
import { knownRequests } from '../../../test/fixtures/known-requests.ts'
import { ANSWER_SHAPES, REQUEST_SHAPES } from '../../../test/fixtures/shapes.ts'
import { shapedDocuments } from '../../../test/generators/shaped-documents.ts'
import { geminiRequests } from '../../../test/generators/gemini-requests.ts'
import { chatRequests, messagesRequests } from '../../../test/generators/requests.ts'
import { responsesRequests } from '../../../test/generators/responses-requests.ts'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CHAT_REQUEST } from './chat/shape.ts'
import { camelCase } from './gemini/field-spelling.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import { defineShape, type Shape } from './shape/define-shape.ts'
import { indexOf, kindOfCode, outlineOf, ownerOfCode } from './shape/outline.ts'
import { type Kind, KINDS, type Members, type Owner, OWNERS } from './shape/vocabulary.ts'

const REQUESTS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  chat: chatRequests(),
  gemini: geminiRequests(),
  messages: messagesRequests(),
  responses: responsesRequests(),
}

/** A string or key of a document, with its kind and owner: `content "Hi": text of user`. */
type Described = string

const shown = (scan: ScannedObject, node: Node, kind: Kind, owner: Owner): Described =>
  `${scan.textOf(node)} at ${node}: ${kind} of ${owner}`

function outlined(scan: ScannedObject, shape: Shape): Described[] {
  const codes = outlineOf(scan, shape)
  const strings: Described[] = []
  for (let node = 0; node < scan.tape.length; node += 3) {
    if (scan.kindOf(node) !== 'string') continue
    const code = codes[indexOf(node)] as number
    strings.push(shown(scan, node, KINDS[kindOfCode(code)] as Kind, OWNERS[ownerOfCode(code)] as Owner))
  }
  return strings
}

/** What the tables say of each string, read as a person reads them: each object by itself, without preparing anything. */
class Reading {
  readonly strings: Described[] = []
  readonly #scan: ScannedObject
  readonly #tables: Readonly<Record<string, Members<string>>>

  constructor(scan: ScannedObject, { tables, rootName }: Shape) {
    this.#scan = scan
    this.#tables = tables
    this.#object(ROOT, rootName, rootName === 'Request' ? 'provider' : 'model', 'text')
  }

  #object(node: Node, table: string, around: Owner, text: Kind): void {
    const scan = this.#scan
    const stated = (name: string): unknown => {
      const value = scan.memberOf(node, name)
      return value === undefined ? undefined : scan.parse(value)
    }
    const flagged = Object.keys(this.#tables).find(
      (one) => one.startsWith(`${table}?`) && stated(one.slice(table.length + 1)) === true,
    )
    const members: Members<string> = {
      ...this.#tables[table],
      ...this.#tables[`${table}:${String(stated('type'))}`],
      ...this.#tables[flagged ?? ''],
    }
    const hasRole = text === 'text' && Object.values(members).includes('role')
    const byRole = hasRole ? ownerOfRole(stated('role')) : undefined
    const owner = byRole ?? around
    const textKind = byRole === undefined ? text : byRole === 'tool' ? 'result' : 'text'
    for (const { key, node: value } of scan.entries(node)) {
      const name = Object.hasOwn(members, key) ? key : camelCase(key)
      const place =
        Object.hasOwn(members, name) && (name === key || this.#hasSpellings) ? members[name] : undefined
      this.#add(value - 3, place === undefined ? 'undescribed' : 'structure', owner)
      if (place === undefined) this.#all(value, 'undescribed', owner)
      else this.#value(value, place, owner, textKind)
    }
  }

  get #hasSpellings(): boolean {
    return this.#tables['Part?thought'] !== undefined
  }

  #value(node: Node, place: string, around: Owner, text: Kind): void {
    const scan = this.#scan
    const [content = '', stated] = place.split(' of ')
    const isMap = content.startsWith('{')
    const alternatives = content.replaceAll(/[{}]/g, '').split(' | ')
    const kind = KINDS.find((one) => alternatives.includes(one))
    const table = alternatives.find((one) => Object.hasOwn(this.#tables, one))
    const owner = OWNERS.find((one) => one === stated) ?? (isMap ? around : ownerOfKind(kind)) ?? around
    const type = scan.kindOf(node)
    const covers =
      !isMap &&
      table === undefined &&
      ['arguments', 'input', 'result', 'mark', 'tokens', 'id', 'term', 'data'].includes(kind ?? '')
    if (type === 'array')
      return covers
        ? this.#all(node, kind as Kind, owner)
        : scan.elements(node).forEach((one) => this.#value(one, place, around, text))
    if (type === 'object' && isMap) {
      for (const { node: value } of scan.entries(node)) {
        this.#add(value - 3, 'name', owner)
        this.#value(value, alternatives.join(' | '), owner, text)
      }
      return
    }
    if (type === 'object' && table !== undefined)
      return this.#object(node, table, owner, kind === 'reasoning' || kind === 'result' ? kind : text)
    if (type === 'object') return this.#all(node, covers ? (kind as Kind) : 'undescribed', owner)
    if (isMap || kind === 'number') return this.#add(node, 'undescribed', owner)
    this.#add(node, kind === 'text' ? text : (kind ?? 'undescribed'), owner)
  }

  #all(node: Node, kind: Kind, owner: Owner): void {
    const end = this.#scan.tape[node + 2] as number
    for (let at = node; at < end; at += 3) this.#add(at, kind, owner)
  }

  #add(node: Node, kind: Kind, owner: Owner): void {
    if (this.#scan.kindOf(node) === 'string') this.strings.push(shown(this.#scan, node, kind, owner))
  }
}

function ownerOfRole(role: unknown): Owner | undefined {
  if (role === 'assistant' || role === 'model') return 'model'
  if (role === 'system' || role === 'developer') return 'system'
  if (role === 'tool' || role === 'function') return 'tool'
  return role === 'user' ? 'user' : undefined
}

function ownerOfKind(kind: Kind | undefined): Owner | undefined {
  if (kind === 'arguments' || kind === 'input' || kind === 'reasoning') return 'model'
  return kind === 'result' ? 'tool' : undefined
}

const scanned = (text: string | Buffer): ScannedObject => scanObject(Buffer.from(text), RESPONSE_LIMITS)

const expectEachStringOnce = (text: string | Buffer, shape: Shape): void => {
  const scan = scanned(text)
  expect(outlined(scan, shape)).toEqual(new Reading(scan, shape).strings)
}

describe.each(Object.entries({ ...REQUEST_SHAPES, ...ANSWER_SHAPES }))(
  'in documents of the shape %s',
  (_, shape) => {
    test('every string is in exactly one kind, which is the one that the tables state', () => {
      fc.assert(
        fc.property(shapedDocuments(shape), (text) => expectEachStringOnce(text, shape)),
        { numRuns: lawRuns(3000) },
      )
    })
  },
)

test.each(Object.entries(REQUESTS))(
  'every string of a random %s request is in exactly one kind',
  (name, requests) => {
    fc.assert(
      fc.property(requests, (text) => expectEachStringOnce(text, REQUEST_SHAPES[name] as Shape)),
      { numRuns: lawRuns(1000) },
    )
  },
)

test('every string of a recorded request or a golden file is in exactly one kind', () => {
  const requests = knownRequests()
  expect(requests.length).toBeGreaterThan(100)
  for (const { dialect, bytes } of requests) expectEachStringOnce(bytes, REQUEST_SHAPES[dialect] as Shape)
})

test('every string of a recorded answer or event, or of one in a golden file, is in exactly one kind', () => {
  const answers = knownAnswers()
  expect(answers.length).toBeGreaterThan(1000)
  for (const { dialect, form, bytes } of answers)
    expectEachStringOnce(
      bytes,
      (ANSWER_SHAPES[`${dialect} ${form}`] ?? ANSWER_SHAPES[`${dialect} answer`]) as Shape,
    )
})

test.each(Object.entries({ ...REQUEST_SHAPES, ...ANSWER_SHAPES }))(
  'a member that is taken out of the shape %s is undescribed, with its name and its value',
  (_, { tables, rootName }) => {
    const bases = Object.entries(tables).filter(([table]) => !/[:?]/.test(table))
    for (const [table, members] of bases) {
      const isRoot = table === rootName
      const owner = rootName === 'Request' ? 'provider' : 'model'
      for (const name of Object.keys(members)) {
        const { [name]: _taken, ...rest } = members
        const describedBy = (one: Members<string>): (string | undefined)[] => {
          const holder = isRoot ? {} : { [rootName]: { holder: table } }
          const shape = defineShape<string>({ ...tables, [table]: one, ...holder }, undefined, rootName)
          const object = { [name]: 'Ann' }
          const strings = outlined(scanned(JSON.stringify(isRoot ? object : { holder: object })), shape)
          return strings.slice(-2).map((string) => string.split(': ')[1])
        }
        expect(describedBy(members)[0]).toContain('structure')
        expect(describedBy(rest)).toEqual([`undescribed of ${owner}`, `undescribed of ${owner}`])
      }
    }
  },
)

test('a role or a type that is written with escape sequences is read', () => {
  const text = '{"messages":[{"content":"42","\\u0072ole":"\\u0074ool"}]}'
  expect(outlined(scanned(text), CHAT_REQUEST)).toContainEqual(
    expect.stringContaining('"42" at 15: result of tool'),
  )
})

test('of two members with one name the last one counts, as for JSON.parse', () => {
  const text = '{"messages":[{"role":"tool","content":"42","role":"user"}]}'
  expect(outlined(scanned(text), CHAT_REQUEST)).toContainEqual(
    expect.stringContaining('"42" at 21: text of user'),
  )
})

test('an object at a place for a mark is a mark itself, so that readers leave out all that it describes', () => {
  const scan = scanned('{"messages":[{"content":[{"text":"Hi","cache_control":{"type":"ephemeral"}}]}]}')
  const codes = outlineOf(scan, CHAT_REQUEST)
  const mark = scan.tape.findIndex(
    (start, at) => at % 3 === 0 && scan.textOf(at) === '{"type":"ephemeral"}' && start > 0,
  )
  expect(KINDS[kindOfCode(codes[indexOf(mark)] as number)]).toBe('mark')
})
