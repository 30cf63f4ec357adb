import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { Node, ScannedObject } from '../../protocols/json/scanned-object.ts'
import type { Adapted } from '../provider.ts'

/** Version of the messages protocol that Bedrock takes in the body. */
const VERSION = 'bedrock-2023-05-31'

/** Beta features that Bedrock knows: any other is a 400 there. */
const BETAS: ReadonlySet<string> = new Set([
  'compact-2026-01-12',
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dev-full-thinking-2025-05-14',
  'effort-2025-11-24',
  'fine-grained-tool-streaming-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'token-efficient-tools-2025-02-19',
  'tool-examples-2025-10-29',
  'tool-search-tool-2025-10-19',
])

/** Members that Bedrock refuses. */
const REFUSED = ['container', 'inference_geo', 'mcp_servers', 'metadata', 'service_tier', 'speed'] as const
/** Members that it takes with a beta feature alone. */
const OF_BETAS: Readonly<Record<string, string>> = { context_management: 'context-management-2025-06-27' }
/** Member of a tool that it refuses. */
const REFUSED_OF_TOOL = 'eager_input_streaming'

/**
 * A messages request as `invoke` takes it: version and beta features in the body, model and `stream` in the
 * path. What Bedrock refuses is left out and named. All other bytes stay.
 */
export function invokeBody(body: Buffer, headers: readonly string[]): Adapted {
  const scan = scanObject(body)
  const given = [...betasIn(scan.value('anthropic_beta')), ...betasOf(headers)]
  const betas = [...new Set(given.filter((name) => BETAS.has(name)))]
  const dropped: string[] = REFUSED.filter((name) => scan.has(name))
  for (const [name, beta] of Object.entries(OF_BETAS))
    if (scan.has(name) && !betas.includes(beta)) dropped.push(name)
  const replace = new Map<string, string>()
  const remove = ['model', 'stream', ...dropped]
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  if (given.some((name) => !BETAS.has(name))) dropped.push('anthropic_beta')
  if (betas.length > 0) replace.set('anthropic_beta', JSON.stringify(betas))
  else remove.push('anthropic_beta')
  const tools = toolsWithoutRefused(scan)
  if (tools !== undefined) {
    replace.set('tools', tools)
    dropped.push(REFUSED_OF_TOOL)
  }
  return { body: edit(body, scan, { remove, replace }), dropped }
}

/** The tools without what is refused of them; undefined where nothing is. */
function toolsWithoutRefused(scan: ScannedObject): string | undefined {
  const tools = scan.span('tools')
  if (!tools || scan.kind('tools') !== 'array') return undefined
  const elements = scan.elements(tools.node)
  const isRefused = (node: Node): boolean =>
    scan.kindOf(node) === 'object' && scan.memberOf(node, REFUSED_OF_TOOL) !== undefined
  if (!elements.some(isRefused)) return undefined
  const texts = elements.map((node) => {
    if (!isRefused(node)) return scan.textOf(node)
    const bytes = Buffer.from(scan.textOf(node))
    return edit(bytes, scanObject(bytes), { remove: [REFUSED_OF_TOOL], replace: new Map() }).toString()
  })
  return `[${texts.join(',')}]`
}

function betasIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}

function betasOf(headers: readonly string[]): string[] {
  const at = headers.indexOf('anthropic-beta')
  const names = at === -1 ? [] : (headers[at + 1] ?? '').split(',').map((name) => name.trim())
  return names.filter((name) => name !== '')
}
