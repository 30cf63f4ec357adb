import { ToolUseCounter, type ToolUse, usesOfOtherKinds, countUsesOfKind } from '../tool-use.ts'
import {
  plausibleCountAt,
  type UpstreamCounts,
  readInclusiveUsage,
  type ReportedUsage,
  plausibleCount,
} from '../reported-usage.ts'
import { statedTier, withStatedService } from '../service-tier.ts'
import { asRecord } from '../json/record.ts'
import { isSearch } from './search-item.ts'

type Response = Readonly<Record<string, unknown>>

/**
 * Reads the usage of a response; undefined if it has none. The input includes tokens read from and written to
 * a cache, the output includes reasoning. Uses of tools are taken from the counts that the response reports,
 * otherwise from its items. `tally` contains the uses in the items of the stream, because the last event may
 * leave items out.
 */
export function usageInResponse(response: Response, tally?: ToolUseCounter): ReportedUsage | undefined {
  const counts = readInclusiveUsage(response['usage'])
  if (!counts) return undefined
  const usage = withStatedService(counts, statedTier(response['service_tier']))
  const uses = toolUsesInResponse(response, tally)
  if (uses.length === 0 && !tally?.uses.length) return usage
  return {
    ...usage,
    webSearches: Math.max(countUsesOfKind(uses, 'web_search'), usage.webSearches),
    tools: usesOfOtherKinds(uses, 'web_search'),
  }
}

/** The uses of the provider's tools in a response. */
export function toolUsesInResponse(response: Response, tally = new ToolUseCounter()): readonly ToolUse[] {
  noteItems(tally, response['output'])
  return reportedUses(response, tally.uses)
}

/** Members in which some upstreams report the number of uses, by the kind of tool. */
const REPORTED = [
  ['web_search', ['web_search_calls', 'x_search_calls']],
  ['file_search', ['file_search_calls', 'document_search_calls']],
  ['mcp', ['mcp_calls']],
] as const

/**
 * The uses of the provider's tools, from the counts that the response reports, otherwise from its items
 * (`seen`). `tool_usage` has the number of web searches, and the tokens of images.
 */
function reportedUses(response: Response, seen: readonly ToolUse[]): readonly ToolUse[] {
  const tool = asRecord(response['tool_usage'])
  const details = asRecord(asRecord(response['usage'])?.['server_side_tool_usage_details'])
  const searches = plausibleCount(asRecord(tool?.['web_search'])?.['num_requests'])
  let uses = searches === undefined ? seen : withCount(seen, 'web_search', searches)
  for (const [kind, names] of details ? REPORTED : [])
    if (details && names.some((name) => plausibleCount(details[name]) !== undefined))
      uses = withCount(
        uses,
        kind,
        names.reduce((sum, name) => sum + plausibleCountAt(details, name), 0),
      )
  return withForms(uses, response, asRecord(tool?.['image_gen']))
}

function withCount(uses: readonly ToolUse[], kind: ToolUse['kind'], total: number): readonly ToolUse[] {
  const others = usesOfOtherKinds(uses, kind)
  return total > 0 ? [...others, { kind, count: total }] : others
}

/**
 * Adds to each use of a tool what its price depends on: the memory size of the container, or the image model
 * and its tokens. Memory and model are in the tools of the request, which the response repeats.
 */
function withForms(
  uses: readonly ToolUse[],
  response: Response,
  drawn: UpstreamCounts | undefined,
): readonly ToolUse[] {
  const output = drawn ? plausibleCountAt(drawn, 'output_tokens') : 0
  if (uses.length === 0 && output === 0) return uses
  const memory = textOf(asRecord(toolOf(response, /^code_interpreter$/)?.['container'])?.['memory_limit'])
  const model = textOf(toolOf(response, /^image_generation$/)?.['model'])
  const formed = uses.map((use): ToolUse => {
    if (use.kind === 'code_interpreter' && memory !== undefined) return { ...use, form: memory }
    return use.kind === 'image_generation' ? { ...use, model } : use
  })
  if (!drawn || output === 0) return formed
  const details = asRecord(drawn['input_tokens_details']) ?? {}
  const input = plausibleCountAt(drawn, 'input_tokens')
  const image = Math.min(plausibleCountAt(details, 'image_tokens'), input)
  const pictures = Math.max(countUsesOfKind(uses, 'image_generation'), 1)
  const tokens = { text: input - image, image, output }
  return [
    ...usesOfOtherKinds(formed, 'image_generation'),
    { kind: 'image_generation', count: pictures, model, tokens },
  ]
}

function toolOf(response: Response, type: RegExp): Response | undefined {
  const tools: readonly unknown[] = Array.isArray(response['tools']) ? response['tools'] : []
  return tools.map((tool) => asRecord(tool)).find((tool) => type.test(String(tool?.['type'])))
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

type Item = Readonly<Record<string, unknown>>

/** Kinds of provider-run tools, by the type of their output item. */
const KINDS: ReadonlyMap<unknown, ToolUse['kind']> = new Map<unknown, ToolUse['kind']>([
  ['web_search_call', 'web_search'],
  ['x_search_call', 'web_search'],
  ['file_search_call', 'file_search'],
  ['code_interpreter_call', 'code_interpreter'],
  ['shell_call', 'code_interpreter'],
  ['image_generation_call', 'image_generation'],
  ['mcp_call', 'mcp'],
])

/** Records the use of a provider's tool that an output item reports. A container is recorded only once. */
export function recordItemToolUse(tally: ToolUseCounter, index: number, value: unknown): void {
  const item = asRecord(value)
  const kind = item && KINDS.get(item['type'])
  if (!kind) return
  const container = containerOf(item)
  if (item['type'] === 'shell_call' && container === undefined) return
  if (item['type'] === 'web_search_call' && !isSearch(item)) return tally.remove(`item ${index}`)
  // Some providers name the container only when the item is done.
  if (container !== undefined) tally.remove(`item ${index}`)
  const key = container === undefined ? `item ${index}` : `container ${container}`
  tally.note(key, { kind, count: 1, ...(kind === 'image_generation' && formOf(item)) })
}

/** Records the uses of tools that a list of items reports. */
function noteItems(tally: ToolUseCounter, output: unknown): void {
  if (Array.isArray(output))
    for (const [index, item] of output.entries()) recordItemToolUse(tally, index, item)
}

function containerOf(item: Item): string | undefined {
  const id = item['container_id'] ?? asRecord(item['environment'])?.['container_id']
  return typeof id === 'string' && id !== '' ? id : undefined
}

function formOf({ size, quality }: Item): Pick<ToolUse, 'form'> {
  return typeof size === 'string' && typeof quality === 'string' ? { form: `${size}/${quality}` } : {}
}
