import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { Adapted } from '../provider.ts'
import { refusesLifetimes, withoutLifetimes } from './cache-lifetimes.ts'
import { hasToolSearch, takenTools } from './refused-of-tools.ts'
import { goesAlong } from './unconfirmed-betas.ts'

/** Version of the messages protocol that Bedrock takes in the body. */
const VERSION = 'bedrock-2023-05-31'

/**
 * Beta features that Bedrock knows, or may know (`unconfirmed-betas.ts`): any other is a 400 there. A model
 * without a feature that its client asks for answers with its own 400.
 */
const BETAS: ReadonlySet<string> = new Set([
  'compact-2026-01-12',
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dangerous-tool-use-2026-09-03',
  'dev-full-thinking-2025-05-14',
  'effort-2025-11-24',
  'fine-grained-tool-streaming-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'mid-conversation-output-config-2026-07-01',
  'mid-conversation-tool-changes-2026-07-01',
  'output-128k-2025-02-19',
  'thinking-binding-controls-2026-08-01',
  'thinking-display-updates-2026-08-18',
  'token-efficient-tools-2025-02-19',
  'tool-examples-2025-10-29',
  'tool-search-tool-2025-10-19',
])

/** Members that Bedrock refuses. */
const REFUSED = ['container', 'inference_geo', 'mcp_servers', 'metadata', 'service_tier', 'speed'] as const
/** Members that it takes with a beta feature alone. */
const OF_BETAS: Readonly<Record<string, string>> = {
  context_management: 'context-management-2025-06-27',
  safeguards: 'dangerous-tool-use-2026-09-03',
}
/** Beta feature for tools that wait until they are found. */
const TOOL_SEARCH = 'tool-search-tool-2025-10-19'
/** Names that features have here, where they differ from those of Anthropic's own API. */
const RENAMED: ReadonlyMap<string, string> = new Map([['advanced-tool-use-2025-11-20', TOOL_SEARCH]])

/**
 * A messages request as `invoke` takes it: version and beta features in the body, model and `stream` in the
 * path. What Bedrock, or the model of this name, refuses is left out and named. All other bytes stay.
 */
export function invokeBody(given: Buffer, headers: readonly string[], model: string): Adapted {
  const body = refusesLifetimes(model) ? withoutLifetimes(given) : given
  const scan = scanObject(body)
  const asked = [...betasIn(scan.value('anthropic_beta')), ...betasOf(headers)]
  const named = asked.map((name) => RENAMED.get(name) ?? name)
  if (hasToolSearch(scan)) named.push(TOOL_SEARCH)
  const betas = [...new Set(named.filter((name) => BETAS.has(name) && goesAlong(name, scan, body)))]
  const dropped: string[] = REFUSED.filter((name) => scan.has(name))
  for (const [name, beta] of Object.entries(OF_BETAS))
    if (scan.has(name) && !betas.includes(beta)) dropped.push(name)
  const replace = new Map<string, string>()
  const remove = ['model', 'stream', ...dropped]
  if (body !== given) dropped.push('cache_control.ttl')
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  if (named.some((name) => !betas.includes(name))) dropped.push('anthropic_beta')
  if (betas.length > 0) replace.set('anthropic_beta', JSON.stringify(betas))
  else remove.push('anthropic_beta')
  const tools = takenTools(scan, betas.includes(TOOL_SEARCH))
  if (tools) {
    dropped.push(...tools.dropped)
    if (tools.text !== '[]') replace.set('tools', tools.text)
    // A choice without tools is refused.
    else remove.push('tools', 'tool_choice')
  }
  return { body: edit(body, scan, { remove, replace }), dropped }
}

function betasIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}

function betasOf(headers: readonly string[]): string[] {
  const at = headers.indexOf('anthropic-beta')
  const names = at === -1 ? [] : (headers[at + 1] ?? '').split(',').map((name) => name.trim())
  return names.filter((name) => name !== '')
}
