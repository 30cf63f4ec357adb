import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'

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

/**
 * A messages request as `invoke` takes it: version and beta features in the body, model and `stream` in the
 * path. All other bytes stay.
 */
export function invokeBody(body: Buffer, headers: readonly string[]): Buffer {
  const scan = scanObject(body)
  const betas = betasOf(headers)
  const replace = new Map<string, string>()
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  if (betas.length > 0 && !scan.has('anthropic_beta')) replace.set('anthropic_beta', JSON.stringify(betas))
  return edit(body, scan, { remove: ['model', 'stream'], replace })
}

function betasOf(headers: readonly string[]): string[] {
  const at = headers.indexOf('anthropic-beta')
  const names = at === -1 ? [] : (headers[at + 1] ?? '').split(',').map((name) => name.trim())
  return names.filter((name) => BETAS.has(name))
}
