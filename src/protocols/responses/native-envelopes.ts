import { isEnvelope, MAY_HOLD_ENVELOPE } from '../envelope.ts'
import { changedArray } from '../json/changed-array.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/**
 * Text of `input` without reasoning of other providers, whose envelopes upstreams of this dialect refuse;
 * undefined if there is none.
 */
export function inputWithoutEnvelopes(scan: ScannedObject): string | undefined {
  const input = scan.span('input')
  if (!input || scan.kindOf(input.node) !== 'array') return undefined
  if (!scan.bytes.includes(MAY_HOLD_ENVELOPE)) return undefined
  return changedArray(scan, input.node, (item) => {
    const content = scan.kindOf(item) === 'object' ? scan.memberOf(item, 'encrypted_content') : undefined
    if (content === undefined || scan.kindOf(content) !== 'string') return 'stays'
    return isEnvelope(String(scan.parse(content))) ? 'goes' : 'stays'
  })
}
