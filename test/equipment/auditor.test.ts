import { describe, expect, test } from 'vitest'
import { auditBooks, type Books, type GrantedQuotas, type Observation } from './auditor.ts'
import { auditDeliveries, type Exception, type Sent } from './deliveries.ts'

const GRANTED: GrantedQuotas = { tokens: new Map([['t', 1000]]), users: new Map([['u', 2000]]) }
const TOKEN = {
  id: 7,
  user_id: 3,
  name: 't',
  status: 1,
  remain_quota: 910,
  used_quota: 90,
  accessed_time: 0,
}
const USER = { id: 3, username: 'u', quota: 1910, used_quota: 90, request_count: 1 }
const ROW = { id: 'a', user_id: 3, token_id: 7, quota: 90, reason: 'complete' }
const SEEN: Observation = {
  call: 'one',
  id: 'a',
  status: 200,
  sawContent: true,
  complete: true,
  quota: 90,
  seenCost: 90,
}

function books(changes: Partial<Books> = {}): Books {
  return { tokens: [TOKEN], users: [USER], usage: [ROW], openHolds: [], ...changes }
}

describe('the auditor', () => {
  test('the auditor finds nothing wrong in correct books', () => {
    expect(auditBooks(books(), [SEEN], GRANTED)).toEqual([])
  })

  test.each<[string, Books, readonly Observation[], string]>([
    ['a charge that was lost', books({ usage: [] }), [SEEN], 'a was seen complete and never charged'],
    ['a charge that is wrong', books(), [{ ...SEEN, quota: 91 }], 'charged 90 (complete), not 91'],
    ['a charge that was made twice', books({ usage: [ROW, ROW] }), [SEEN], 'a has two usage rows'],
    ['an id that was given twice', books(), [SEEN, SEEN], 'a answered two requests'],
    [
      'content that nobody was charged for',
      books({ usage: [] }),
      [{ ...SEEN, complete: false }],
      'a delivered content without a trace',
    ],
    [
      'a refusal that was charged',
      books(),
      [{ ...SEEN, status: 403, sawContent: false, complete: false }],
      'refused with 403',
    ],
    [
      'quota that is nowhere',
      books({ tokens: [{ ...TOKEN, remain_quota: 909 }] }),
      [SEEN],
      'was given 1000, has 909 and used 90',
    ],
    ['a sum that is not its rows', books({ users: [{ ...USER, used_quota: 80 }] }), [SEEN], 'user u used 80'],
    [
      'an overdrawn token',
      books({ tokens: [{ ...TOKEN, remain_quota: -1, used_quota: 1001 }] }),
      [SEEN],
      'overdrawn by 1',
    ],
    ['a hold that is open', books({ openHolds: [{ id: 'b' }] }), [SEEN], 'hold b is still open'],
  ])('the auditor finds %s', (_, wrong, seen, said) => {
    expect(auditBooks(wrong, seen, GRANTED).join('\n')).toContain(said)
  })
})

describe("charges for the upstream's work", () => {
  const sent: readonly Sent[] = [{ call: 'one', cost: 90 }]
  const charged = (quota: number, reason: string): Books => books({ usage: [{ ...ROW, quota, reason }] })
  const left: Observation = { ...SEEN, complete: false, seenCost: 30 }
  const unserved: Observation = { ...SEEN, sawContent: false, complete: false, seenCost: 10 }

  test("the upstream's work is charged, to the unit", () => {
    expect(auditDeliveries(books(), [SEEN], sent)).toEqual({
      broken: [],
      sent: 90,
      charged: 90,
      excepted: {},
    })
  })

  test.each<[Exception, Books, Observation, number]>([
    ['the client left', charged(30, 'client_gone'), left, 60],
    ['the node was killed', charged(1, 'crash'), left, 89],
    ['nothing reached the client', charged(0, 'failed'), unserved, 90],
    ['nothing reached the client', books({ usage: [] }), { ...unserved, id: undefined, status: 0 }, 90],
  ])("the upstream's work may be charged less where %s", (exception, right, observation, less) => {
    expect(auditDeliveries(right, [observation], sent)).toMatchObject({
      broken: [],
      excepted: { [exception]: less },
    })
  })

  test('a call that was sent twice is charged once, for the delivered attempt', () => {
    expect(auditDeliveries(books(), [SEEN], [{ call: 'one', cost: 20 }, ...sent])).toEqual({
      broken: [],
      sent: 110,
      charged: 90,
      excepted: { 'the attempt was not delivered': 20 },
    })
  })

  test.each<[string, Books, readonly Observation[], readonly Sent[], string]>([
    [
      'a charge that is too small',
      charged(89, 'complete'),
      [SEEN],
      sent,
      'a: the upstream sent what costs 90, charged were 89',
    ],
    [
      'a charge that is too small, though its client saw nothing of it',
      charged(89, 'complete'),
      [unserved],
      sent,
      'a: the upstream sent what costs 90, charged were 89',
    ],
    [
      'content that failed for nothing',
      charged(0, 'failed'),
      [left],
      sent,
      'a: the upstream sent what costs 90, charged were 0',
    ],
    [
      'content without a row',
      books({ usage: [] }),
      [left],
      sent,
      'a: the upstream sent what costs 90, charged were 0',
    ],
    [
      'one who left and did not pay what they saw',
      charged(29, 'client_gone'),
      [left],
      sent,
      'a was charged 29 (client_gone), and its client saw what costs 30',
    ],
    [
      'one who left before the answer and did not pay the prompt',
      charged(9, 'client_gone'),
      [unserved],
      sent,
      'a was charged 9 (client_gone), and its client saw what costs 10',
    ],
    [
      'a cut answer that is not paid as far as it was seen',
      charged(29, 'cut'),
      [left],
      [{ call: 'one', cost: 20 }],
      'a was charged 29 (cut), and its client saw what costs 30',
    ],
    [
      'one charge for two calls',
      books(),
      [SEEN, { ...SEEN, call: 'two' }],
      [...sent, { call: 'two', cost: 90 }],
      'the upstream sent what costs 180, charged were 90, and 0 have a reason',
    ],
  ])("the upstream's work, and %s is found", (_, wrong, observations, all, said) => {
    expect(auditDeliveries(wrong, observations, all).broken).toContain(said)
  })
})
