import { expect, test } from 'vitest'
import { CHANNEL_SETTINGS } from '../../../src/domain/records/channel.ts'
import { MODEL_SETTINGS } from '../../../src/domain/records/model.ts'
import type { RecordColumns } from '../../../src/domain/records/record.ts'
import { TOKEN } from '../../../src/domain/records/token.ts'
import { USER } from '../../../src/domain/records/user.ts'
import type { AuditEntry } from '../../api/audit.ts'
import { audit as en } from '../../locales/en/audit.ts'
import { call } from '../../locales/en/call.ts'
import { models } from '../../locales/en/models.ts'
import { users } from '../../locales/en/users.ts'
import { audit as zh } from '../../locales/zh/audit.ts'
import { call as zhCall } from '../../locales/zh/call.ts'
import { models as zhModels } from '../../locales/zh/models.ts'
import { users as zhUsers } from '../../locales/zh/users.ts'
import { changeText } from './audit-change-text.ts'

const FORMATS = { money: (quota: number) => `$${quota / 500_000}`, time: (at: number) => `time ${at}` }
const KEY: AuditEntry['object'] = { kind: 'key', id: 5, name: 'ci', owner: { id: 13, name: 'anna' } }

function inWords(field: string, before: unknown, after: unknown, object = KEY, isChinese = false): string {
  const texts = isChinese
    ? { audit: zh, users: zhUsers, models: zhModels, call: zhCall }
    : { audit: en, users, models, call }
  const change = changeText({ field, before, after }, object, texts, FORMATS)
  return `${change.field}: ${change.before === undefined ? '' : `${change.before} → `}${change.after}`
}

test('the audit log describes changes in words, in English and in Chinese', () => {
  expect(inWords('status', 1, 2)).toBe('Status: Enabled → Disabled')
  expect(inWords('status', 1, 2, KEY, true)).toBe('状态: 已启用 → 已禁用')
  expect(inWords('user_id', null, 13)).toBe('User: anna')
  expect(inWords('role', 1, 10, { kind: 'user', id: 2, name: 'ann' })).toBe('Role: Member → Administrator')
  expect(inWords('remain_quota', 0, 250_000)).toBe('Quota: $0 → $0.5')
  expect(inWords('expired_time', -1, 1_800_000_000)).toBe('Expires: Never → time 1800000000')
  expect(inWords('unlimited_quota', true, false)).toBe('Unlimited: Yes → No')
  expect(inWords('budget_period', '', 'month')).toBe('Budget period: Month')
  expect(inWords('password', null, 'changed', KEY, true)).toBe('密码: 已更改')
  const session = { kind: 'session', id: 2, name: 'ann' } as AuditEntry['object']
  for (const [method, word, inChinese] of [
    ['password', 'password', '密码'],
    ['access token', 'access token', '访问令牌'],
    ['identity', 'identity provider', '身份提供方'],
  ] as const) {
    expect(inWords('method', null, method, session)).toBe(`Method: ${word}`)
    expect(inWords('method', null, method, session, true)).toBe(`方式: ${inChinese}`)
  }
  const price = { kind: 'model', id: null, name: 'm' } as const
  expect(inWords('price', { input: 1, output: 2 }, { input: 3, output: 4 }, price)).toBe(
    'Price: Input 1, Output 2 → Input 3, Output 4',
  )
  const set = { kind: 'price', id: null, name: 'm' } as const
  expect(inWords('exact', null, { input: '1', tools: { file_search: '0.0025' } }, set)).toBe(
    'Price: Input 1, Tools File searches 0.0025',
  )
  expect(inWords('models', ['a'], ['a', 'b'])).toBe('Models: a → a, b')
})

test('every field of users, keys, channels and models that the audit log records has a label in words', () => {
  const recorded = ({ columns }: RecordColumns): string[] =>
    columns.flatMap(({ audit, field }) => (audit ? [typeof audit === 'string' ? audit : field] : []))
  const names = [
    ...recorded(USER),
    ...recorded(TOKEN),
    ...Object.keys(CHANNEL_SETTINGS.fields),
    ...Object.keys(MODEL_SETTINGS.fields),
    'limits_by',
    'retired_keys',
    'other_fields',
  ]
  for (const words of [en.fields, zh.fields]) expect(names.filter((name) => !(name in words))).toEqual([])
})
