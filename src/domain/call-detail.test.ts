import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callExtraFactsText } from './call-detail.ts'
import type { Usage } from '@sluice/wire/usage'

const small = fc.nat({ max: 2 })

test('the details of a call are JSON with only the fields that differ from their defaults, or empty if none does', () => {
  fc.assert(
    fc.property(
      fc.record({ audioCacheRead: small, imageCacheRead: small, images: small }),
      fc.constantFrom(undefined, {}, { size: '1x1' }, { size: '1x1', quality: 'hd' }),
      fc.record({ queuedMs: small, connectMs: small }),
      fc.constantFrom([], ['seed'], ['seed', 'logit_bias']),
      fc.constantFrom([], [{ kind: 'mcp', count: 2, price: { digits: 25n, scale: 4 } } as const]),
      (counts, form, delays, dropped, tools) => {
        const usage = counts as unknown as Usage
        const text = callExtraFactsText(usage, { form, tools }, delays, dropped)
        const said = {
          ...(counts.audioCacheRead > 0 && { audio_cached: counts.audioCacheRead }),
          ...(counts.imageCacheRead > 0 && { image_cached: counts.imageCacheRead }),
          ...(counts.images > 0 && form?.size !== undefined && form),
          ...(tools.length > 0 && { tools: [{ kind: 'mcp', count: 2, price: '0.0025' }] }),
          ...(delays.queuedMs > 0 && { queued_ms: delays.queuedMs }),
          ...(delays.connectMs > 0 && { connect_ms: delays.connectMs }),
          ...(dropped.length > 0 && { dropped }),
        }
        expect(text === undefined ? {} : JSON.parse(text)).toEqual(said)
        expect(text === undefined).toBe(Object.keys(said).length === 0)
      },
    ),
  )
})
