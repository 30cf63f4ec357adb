import { asRecord } from '@sluice/wire/json/record'
import { applyEdits, renderArray } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { Node, ScannedObject } from '@sluice/wire/json/scanned-object'
import { functionItems, inputItems, isGatewayItemId, mcpCallAsFunction } from '@sluice/wire/responses'
import { randomBytes } from 'node:crypto'
import { GatewayError } from '../../errors.ts'
import type { OfferedTools } from './gateway-tools.ts'
import { asFields } from './protocol.ts'

/** Types of tools that the client runs, so that `max_tool_calls` does not count them. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set(['function', 'custom', 'namespace'])
/** The choices after which a model may still answer without a tool. */
const FREE_CHOICES: ReadonlySet<unknown> = new Set(['auto', 'none'])

/** Makes the request of each round from that of the client. */
export class RoundRequests {
  readonly #scan: ScannedObject
  readonly #tools: string
  readonly #choice: string | undefined
  readonly #hasOtherTools: boolean
  /** The items of the input with those that were added, as JSON texts. */
  readonly #items: string[]
  #bytes: number

  /** Throws `invalid_request` for a `tool_choice` that names no tool. */
  constructor(scan: ScannedObject, offered: OfferedTools) {
    this.#scan = scan
    this.#tools = toolsOf(scan, offered)
    this.#choice = choiceOf(scan, offered)
    const own = new Set(offered.tools.map(({ index }) => index))
    const tools = scan.value('tools') as readonly unknown[]
    this.#hasOtherTools = tools.some(
      (tool, index) => !own.has(index) && !OF_CLIENTS.has(asFields(tool)['type']),
    )
    this.#items = itemsOf(scan, offered)
    this.#bytes =
      scan.bytes.length + this.#tools.length + this.#items.reduce((sum, item) => sum + item.length, 0)
  }

  /** Bytes of the next request, about. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds items to the input of the rounds that follow. */
  add(items: readonly string[]): void {
    for (const item of items) {
      this.#items.push(item)
      this.#bytes += Buffer.byteLength(item) + 1
    }
  }

  /** The body of the next round. */
  body(
    isFirst: boolean,
    left: { readonly outputTokens: number | undefined; readonly calls: number },
  ): Buffer {
    const remove = ['background', 'max_tool_calls']
    const replace = new Map([
      ['tools', this.#tools],
      ['store', 'false'],
      ['input', `[${this.#items.join(',')}]`],
    ])
    if (left.outputTokens !== undefined) replace.set('max_output_tokens', String(left.outputTokens))
    if (this.#hasOtherTools && Number.isFinite(left.calls)) replace.set('max_tool_calls', String(left.calls))
    // A model that must call a tool in each round would never answer.
    const choice = isFirst ? this.#choice : laterChoice(this.#choice)
    if (choice !== undefined) replace.set('tool_choice', choice)
    // The provider stores nothing, so that only encrypted thoughts can be sent back.
    const reasoning = this.#scan.value('reasoning')
    if (asRecord(reasoning))
      replace.set('include', JSON.stringify(withEncrypted(this.#scan.value('include'))))
    return applyEdits(this.#scan.bytes, this.#scan, { remove, replace })
  }
}

const ENCRYPTED = 'reasoning.encrypted_content'

function withEncrypted(include: unknown): readonly unknown[] {
  const given: readonly unknown[] = Array.isArray(include) ? include : []
  return given.includes(ENCRYPTED) ? given : [...given, ENCRYPTED]
}

function toolsOf(scan: ScannedObject, { tools, offers }: OfferedTools): string {
  const list = scan.span('tools')?.node as Node
  let index = -1
  const text = renderArray(scan, list, () => {
    index += 1
    const at = tools.findIndex((tool) => tool.index === index)
    if (at === -1) return 'stays'
    const definitions = offers[at]?.definitions ?? []
    return definitions.length === 0 ? 'goes' : { text: definitions.join(',') }
  })
  return text ?? scan.textOf(list)
}

function choiceOf(scan: ScannedObject, offered: OfferedTools): string | undefined {
  const choice = asRecord(scan.value('tool_choice'))
  if (!choice) return scan.has('tool_choice') ? JSON.stringify(scan.value('tool_choice')) : undefined
  if (choice['type'] === 'allowed_tools' && Array.isArray(choice['tools']))
    return JSON.stringify({
      ...choice,
      tools: choice['tools'].flatMap((one) => chosen(one, offered) ?? [one]),
    })
  const functions = chosen(choice, offered)
  if (!functions) return JSON.stringify(choice)
  if (functions.length === 0)
    throw new GatewayError('invalid_request', `Invalid 'tool_choice': expected a tool of the request.`)
  const [only] = functions
  return JSON.stringify(
    functions.length === 1 ? only : { type: 'allowed_tools', mode: 'required', tools: functions },
  )
}

/** The functions that a choice means; undefined if it means other tools. */
function chosen(choice: unknown, { tools, functions }: OfferedTools): readonly object[] | undefined {
  const { type, server_label: label, name } = asFields(choice)
  if (type !== 'mcp' || !tools.some((tool) => tool.label === label)) return undefined
  return [...functions]
    .filter(([, { tool, listed }]) => tool.label === label && (name === undefined || name === listed))
    .map(([one]) => ({ type: 'function', name: one }))
}

function laterChoice(choice: string | undefined): string | undefined {
  if (choice === undefined) return undefined
  const given: unknown = JSON.parse(choice)
  if (FREE_CHOICES.has(given)) return choice
  const record = asRecord(given)
  return record?.['type'] === 'allowed_tools' ? JSON.stringify({ ...record, mode: 'auto' }) : '"auto"'
}

/** The items of the input. Calls of tools that the gateway has served are calls of functions to the model. */
function itemsOf(scan: ScannedObject, offered: OfferedTools): string[] {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) === 'null') return []
  if (scan.kindOf(input.node) !== 'array') {
    const [message] = JSON.parse(inputItems(scan, (prefix) => `${prefix}_${randomBytes(16).toString('hex')}`))
    const { id: _, ...item } = message as Record<string, unknown>
    return [JSON.stringify(item)]
  }
  const labels = new Set(offered.tools.map(({ label }) => label))
  return scan.elements(input.node).flatMap((node) => {
    const text = scan.textOf(node)
    if (scan.kindOf(node) !== 'object') return [text]
    const item = asFields(scan.parse(node))
    const { id, type = 'message' } = item
    // Providers would look for the ids that the gateway has given.
    if (typeof id === 'string' && isGatewayItemId(id) && type === 'message') return [withoutId(text)]
    if (!labels.has(String(item['server_label']))) return [text]
    if (item['type'] === 'mcp_list_tools') return []
    if (item['type'] !== 'mcp_call') return [text]
    const call = mcpCallAsFunction(item)
    const name = offered.functionOf(String(item['server_label']), String(item['name'])) ?? call.name
    return functionItems({ ...call, name })
  })
}

/** An item without its id. */
export function withoutId(item: string): string {
  const bytes = Buffer.from(item)
  return applyEdits(bytes, scanObject(bytes, RESPONSE_LIMITS), {
    remove: ['id'],
    replace: NOTHING,
  }).toString()
}

const NOTHING: ReadonlyMap<string, string> = new Map()
