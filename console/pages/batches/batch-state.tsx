import type { Batch } from '../../api/batches.ts'
import { StateMark, type StateSeverity } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

const TONES: Readonly<Record<Batch['status'], StateSeverity>> = {
  in_progress: 'ok',
  finalizing: 'ok',
  cancelling: 'warn',
  completed: 'ok',
  expired: 'bad',
  cancelled: 'off',
}

export function BatchState({ status }: Pick<Batch, 'status'>) {
  const { batches } = useTexts()
  return <StateMark tone={TONES[status]} word={batches.statuses[status]} />
}

/** The number of lines that have ended, including those that failed or were not made. */
export function endedLines({ completed, failed, expired, cancelled }: Batch): number {
  return completed + failed + expired + cancelled
}
