import type { ScannedObject } from '../json/scanned-object.ts'
import { isEnvelope } from '../envelope.ts'

/** Maximum number of items, counted from the end of a request, whose encrypted contents are compared. */
const MAX_COMPARED = 16

const NONE: readonly string[] = []

/** The encrypted content of an item, if a provider of this dialect made it. */
export function encryptedIn(item: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const content = item?.['encrypted_content']
  return typeof content === 'string' && content !== '' && !isEnvelope(content) ? [content] : NONE
}

/** Encrypted contents in a request's input that providers of this dialect made, the latest first. */
export function encryptedInput(scan: ScannedObject): string[] {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return []
  const found: string[] = []
  for (const item of scan.elements(input.node).toReversed()) {
    if (scan.kindOf(item) !== 'object') continue
    const node = scan.memberOf(item, 'encrypted_content')
    if (node === undefined || scan.kindOf(node) !== 'string') continue
    found.push(...encryptedIn({ encrypted_content: scan.parse(node) }))
    if (found.length >= MAX_COMPARED) break
  }
  return found
}
