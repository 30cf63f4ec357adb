import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type Channel, type ChannelTest, testChannel } from '../../api/channels.ts'
import { StateMark } from '../../components/state-mark.tsx'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './channels-page.module.css'
import { faultOf } from './fault-of.ts'

/** A button that tests a channel and shows the result beside it. */
export function TestButton({
  channel: { id, test_costs },
  label,
  result,
  onResult,
  isSmall = false,
}: {
  readonly channel: Pick<Channel, 'id' | 'test_costs'>
  readonly label: string
  readonly result: ChannelTest | undefined
  readonly onResult: (result: ChannelTest | undefined) => void
  readonly isSmall?: boolean
}) {
  const { channels } = useTexts()
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const testing = useAction(async () => {
    onResult(undefined)
    onResult(await testChannel(id))
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
        title={test_costs ? channels.testCosts : undefined}
        onClick={() => void testing.run()}
      >
        {label}
      </Button>
    </span>
  )
}

/**
 * The result of a test: how the upstream responded, or the reason and the faulty field, and whether the test
 * costs money.
 */
export function TestResult({ result }: { readonly result: ChannelTest }) {
  const { channels } = useTexts()
  return (
    <>
      <Outcome result={result} />
      {result.costs && <small>{channels.testCost}</small>}
    </>
  )
}

function Outcome({ result: { success, message, time } }: { readonly result: ChannelTest }) {
  const { channels } = useTexts()
  const { count } = useFormats()
  if (success === null) return <StateMark tone="off" word={channels.untestedInTime} />
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
