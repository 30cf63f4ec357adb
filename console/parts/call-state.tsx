import { useTexts } from '../texts/use-texts.tsx'
import { StateMark, type Tone } from './state-mark.tsx'

const TONES: Readonly<Record<string, Tone>> = {
  complete: 'ok',
  estimated: 'warn',
  client_gone: 'off',
  cut: 'bad',
  failed: 'bad',
  crash: 'warn',
  'lost-node': 'warn',
}

/** How a call ended. */
export function CallState({ reason }: { readonly reason: string }) {
  const { logs } = useTexts()
  const words: Readonly<Record<string, string>> = logs.reasons
  return <StateMark tone={TONES[reason] ?? 'off'} word={words[reason] ?? reason} />
}
