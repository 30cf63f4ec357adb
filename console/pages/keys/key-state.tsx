import type { ApiKey } from '../../api/keys.ts'
import { StateMark, type Tone } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

const TONES: Readonly<Record<number, Tone>> = { 1: 'ok', 2: 'off', 3: 'warn', 4: 'warn' }

/** Whether a key is active, and if not, why. */
export function KeyState({ status }: Pick<ApiKey, 'status'>) {
  const { keys } = useTexts()
  const words: Readonly<Record<number, string>> = keys.statuses
  return <StateMark tone={TONES[status] ?? 'off'} word={words[status] ?? String(status)} />
}
