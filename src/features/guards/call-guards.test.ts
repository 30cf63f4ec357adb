import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { expect, test } from 'vitest'
import type { GuardPlace } from '../../domain/guard.ts'
import { RequestMemory } from '../../limits/request-memory.ts'
import { textGuard } from '../../../test/fixtures/text-guard.ts'
import { CallGuards } from './call-guards.ts'
import { ActiveGuard } from './active-guard.ts'
import { KnownTexts } from './known-texts.ts'

const MATCH = { kind: 'pii', pii: ['email'] } as const
const LONG = 'Many words of the instructions. '.repeat(1_000)

function checkedError(place: GuardPlace): string {
  const guard = { ...textGuard({ name: 'mail', do: 'redact', match: MATCH }), where: [place] }
  const rule = compileRule(guard.name, MATCH)
  const known = new KnownTexts(new RequestMemory(() => 1024, Date.now))
  const guards = new CallGuards(
    [new ActiveGuard(guard)],
    new Pseudonyms({ key: Buffer.alloc(32), user: '1' }),
    known.of({ client: 1, key: 1 }),
    () => new TextScreen([{ rule, do: guard.do, with: guard.with }]),
  )
  return guards.checkedError(LONG)
}

test('a long text of an error is cut if a guard checks it, and stays whole if none does', () => {
  expect(checkedError('output')).toHaveLength(16_384)
  expect(checkedError('input')).toHaveLength(LONG.length)
})
