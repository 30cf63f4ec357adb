import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type ChannelTest, testChannel } from '../../api/channels.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { useFormats, useSignedIn } from '../../parts/session.tsx'
import { useAction } from '../../parts/use-action.ts'
import { useTexts } from '../../texts/use-texts.tsx'
import classes from './channels-page.module.css'
import { faultOf } from './fault-of.ts'

/** Asks the upstream for one token, and shows the result beside itself. */
export function TestButton({
  id,
  label,
  isSmall = false,
}: {
  readonly id: number
  readonly label: string
  readonly isSmall?: boolean
}) {
  const { channels } = useTexts()
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const [result, setResult] = useState<ChannelTest>()
  const testing = useAction(async () => {
    setResult(undefined)
    setResult(await testChannel(id))
    await client.invalidateQueries({ queryKey: [profile.id, 'channels'] })
  })
  return (
    <span className={classes['test']}>
      <span role="status" aria-label={channels.testResult}>
        {testing.isRunning && channels.testing}
        {result && <TestResult result={result} />}
      </span>
      <Button
        variant="default"
        size={isSmall ? 'xs' : 'sm'}
        loading={testing.isRunning}
        onClick={() => void testing.run()}
      >
        {label}
      </Button>
    </span>
  )
}

/** How an upstream answered, or why it did not and which field is at fault. */
export function TestResult({ result: { success, message, time } }: { readonly result: ChannelTest }) {
  const { channels } = useTexts()
  const { count } = useFormats()
  return success ? (
    <StateMark tone="ok" word={channels.answered(count(Math.max(0.01, Math.round(time * 100) / 100)))} />
  ) : (
    <StateMark
      tone="bad"
      word={channels.testFailed(message, channels.faults[faultOf(message)])}
      title={message}
    />
  )
}
