import type { ApiKey } from '../api/keys.ts'
import { StateMark, type StateSeverity } from './state-mark.tsx'
import { useTexts } from '../locales/use-texts.tsx'

const TONES: Readonly<Record<number, StateSeverity>> = { 1: 'ok', 2: 'off', 3: 'warn', 4: 'warn' }

const ENABLED = 1

/** Shows whether a key is active, and if not, why. `isStopped`: a used-up budget refuses its calls. */
export function KeyState({ status, isStopped }: Pick<ApiKey, 'status'> & { readonly isStopped: boolean }) {
  const { keys, limits } = useTexts()
  if (status === ENABLED && isStopped) return <StateMark tone="bad" word={limits.stopped} />
  const words: Readonly<Record<number, string>> = keys.statuses
  return <StateMark tone={TONES[status] ?? 'off'} word={words[status] ?? String(status)} />
}
