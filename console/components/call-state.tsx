import type { Call } from '../api/calls.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { StateMark, type StateSeverity } from './state-mark.tsx'

/** The state of a call that was refused before it began, which is none of the gateway's reasons. */
export const REFUSED = 'refused'

const TONES: Readonly<Record<string, StateSeverity>> = {
  complete: 'ok',
  estimated: 'warn',
  client_gone: 'off',
  cut: 'bad',
  stopped: 'bad',
  failed: 'bad',
  [REFUSED]: 'bad',
  crash: 'warn',
  'lost-node': 'warn',
}

/** How a call ended, with the note about it if there is one. */
export function CallState({
  reason,
  note,
}: Pick<Call, 'note'> & { readonly reason: Call['reason'] | typeof REFUSED }) {
  const { call, logs } = useTexts()
  const words: Readonly<Record<string, string>> = logs.reasons
  const word = words[reason] ?? reason
  if (note === '') return <StateMark tone={TONES[reason] ?? 'off'} word={word} />
  return <StateMark tone="warn" word={logs.noted(word, logs.notes[note])} title={call.notes[note]} />
}
