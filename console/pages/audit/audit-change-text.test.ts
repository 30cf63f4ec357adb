import { expect, test } from 'vitest'
import { BUDGET_PERIODS } from '../../../src/domain/budget.ts'
import { CONTENT_LEVELS } from '../../../src/domain/content-log.ts'
import {
  GUARD_ACTIONS,
  GUARD_FAILURES,
  GUARD_MODES,
  GUARD_PLACES,
  PII_KINDS,
} from '../../../src/domain/guard.ts'
import { MCP_APPROVALS } from '../../../src/domain/mcp.ts'
import { CHANNEL_SETTINGS } from '../../../src/domain/records/channel.ts'
import { MODEL_SETTINGS } from '../../../src/domain/records/model.ts'
import type { RecordColumns } from '../../../src/domain/records/record.ts'
import { TOKEN } from '../../../src/domain/records/token.ts'
import { USER } from '../../../src/domain/records/user.ts'
import type { AuditEntry } from '../../api/audit.ts'
import { texts as en } from '../../locales/en.ts'
import { texts as zh } from '../../locales/zh.ts'
import { changeText } from './audit-change-text.ts'

const FORMATS = { money: (quota: number) => `$${quota / 500_000}`, time: (at: number) => `time ${at}` }
const KEY: AuditEntry['object'] = { kind: 'key', id: 5, name: 'ci', owner: { id: 13, name: 'anna' } }

function inWords(field: string, before: unknown, after: unknown, object = KEY, isChinese = false): string {
  const change = changeText({ field, before, after }, object, isChinese ? zh : en, FORMATS)
  return `${change.field}: ${change.before === undefined ? '' : `${change.before} → `}${change.after}`
}

test('the audit log describes changes in words, in English and in Chinese', () => {
  expect(inWords('status', 1, 2)).toBe('Status: Enabled → Disabled')
  expect(inWords('status', 1, 2, KEY, true)).toBe('状态: 已启用 → 已停用')
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

test.each([
  ['do', GUARD_ACTIONS],
  ['mode', GUARD_MODES],
  ['where', GUARD_PLACES],
  ['on_failure', GUARD_FAILURES],
  ['pii', PII_KINDS],
  ['approve', MCP_APPROVALS],
  ['budget_period', BUDGET_PERIODS],
  ['content_log_what', CONTENT_LEVELS],
  ['balance', ['weight', 'least_busy', 'latency']],
  ['on_client_gone', ['cancel', 'drain']],
] as const)('the audit log has words for each value of %s, alone and in a guard or list', (field, values) => {
  const guards: AuditEntry['object'] = { kind: 'option', id: null, name: 'guards' }
  for (const value of values) {
    const [word, inChinese] = [false, true].map((isChinese) => inWords(field, null, value, KEY, isChinese))
    expect(word?.split(': ')[1]).not.toBe(value)
    expect(inChinese?.split(': ')[1]).toMatch(/\p{Script=Han}/u)
    const list = inWords('value', null, [{ [field]: [value, value] }], guards, true)
    expect(list).toContain(inChinese?.split(': ')[1])
    expect(list).not.toContain(', ')
  }
})

test('the audit log names rate limits in words', () => {
  const limits: AuditEntry['object'] = { kind: 'option', id: null, name: 'rate_limits' }
  const critical = { requests: 10, window: '60s' }
  expect(inWords('critical', null, critical, limits)).toBe(
    'Sign-ins and revealed keys: Requests 10, Window 60s',
  )
  expect(inWords('critical', null, critical, limits, true)).toBe('登录与显示密钥: 请求数 10，窗口 60s')
  expect(inWords('value', null, 'refuse', { kind: 'option', id: null, name: 'unpriced_models' }, true)).toBe(
    '值: 拒绝',
  )
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
  for (const words of [en.audit.fields, zh.audit.fields])
    expect(names.filter((name) => !(name in words))).toEqual([])
})
