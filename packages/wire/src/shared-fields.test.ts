import { describe, expect, test } from 'vitest'
import { settingsOf } from '../../../test/samples/upstream-settings.ts'
import { conversationOf } from '../../../test/samples/conversation.ts'
import type { RestrictedField, UpstreamSettings } from './upstream-settings.ts'
import type { SharedFields } from './conversation.ts'
import { withoutRestrictedFields } from './shared-fields.ts'

const SHARED: SharedFields = new Map([
  ['service_tier', '"flex"'],
  ['safety_identifier', '"s"'],
  ['store', 'true'],
  ['user', '"u"'],
])

function gated(channel: Partial<UpstreamSettings>): { readonly kept: string[]; readonly dropped: string[] } {
  const dropped = new Set<string>()
  const { shared } = withoutRestrictedFields(conversationOf({ shared: SHARED }), settingsOf(channel), dropped)
  return { kept: [...(shared?.keys() ?? [])], dropped: [...dropped] }
}

describe('fields that a channel must allow', () => {
  test('fields that a channel must allow are left out of a converted request, and reported as dropped', () => {
    expect(gated({})).toEqual({ kept: ['store', 'user'], dropped: ['service_tier', 'safety_identifier'] })
    expect(gated({ allow: new Set<RestrictedField>(['service_tier']) }).dropped).toEqual([
      'safety_identifier',
    ])
  })

  test.each([
    ['metadata', undefined, ['metadata', 'service_tier']],
    ['safety_identifier', undefined, ['safety_identifier', 'service_tier']],
    ['user', { id: 'u', field: 'user' }, ['service_tier']],
  ] as const)(
    'the end user and the standard tier are dropped where the channel must allow their field: %s',
    (field, kept, left) => {
      const given = conversationOf({ endUser: { id: 'u', field }, isStandardTier: true })
      const dropped = new Set<string>()
      const { endUser, isStandardTier } = withoutRestrictedFields(given, settingsOf({}), dropped)
      expect({ endUser, isStandardTier }).toEqual({ endUser: kept, isStandardTier: undefined })
      expect([...dropped]).toEqual(left)
      const allow = new Set<RestrictedField>(['service_tier', 'safety_identifier'])
      expect(withoutRestrictedFields(given, settingsOf({ allow }), new Set())).toEqual(given)
    },
  )

  test('pass-through mode changes nothing for a converted request; store is left out where the channel forbids it', () => {
    expect(gated({ pass_through: true })).toEqual(gated({}))
    expect(gated({ pass_through: true, disable_store: true })).toEqual({
      kept: ['user'],
      dropped: ['service_tier', 'safety_identifier', 'store'],
    })
  })
})
