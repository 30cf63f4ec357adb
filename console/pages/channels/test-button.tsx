import { Button, CloseButton } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type Channel, type ChannelTest, testChannel } from '../../api/channels.ts'
import { reloadChannels } from '../../components/channel-actions.ts'
import { showFailure } from '../../components/notify.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './channels-page.module.css'
import { channelFaultOf } from './channel-fault.ts'

/** A button that tests a channel; the result is shown elsewhere. */
export function TestButton({
  channel: { id, test_costs },
  label,
  onResult,
  isSmall = false,
}: {
  readonly channel: Pick<Channel, 'id' | 'test_costs'>
  readonly label: string
  readonly onResult: (result: ChannelTest | undefined) => void
  readonly isSmall?: boolean
}) {
  const texts = useTexts()
  const { channels } = texts
  const client = useQueryClient()
  const test = async (): Promise<void> => {
    onResult(undefined)
    try {
      onResult(await testChannel(id))
    } catch (error) {
      showFailure(error, texts)
    }
    await reloadChannels(client)
  }
  const testing = useAction(test)
  return (
    <Button
      variant="default"
      size={isSmall ? 'xs' : 'sm'}
      loading={testing.isRunning}
      title={test_costs ? channels.testCosts : undefined}
      onClick={() => void testing.run()}
    >
      {label}
    </Button>
  )
}

/** The result of a test, in a line that can be closed. */
export function TestResultLine({
  result,
  onClose,
}: {
  readonly result: ChannelTest
  readonly onClose: () => void
}) {
  const { channels, common } = useTexts()
  return (
    <span className={classes['line']}>
      <span role="status" aria-label={channels.testResult}>
        <TestResult result={result} />
      </span>
      <CloseButton size="sm" aria-label={common.close} title={common.close} onClick={onClose} />
    </span>
  )
}

/**
 * The result of a test: how the upstream responded, or the reason and the faulty field, whether its answer needs
 * repair, and whether the test costs money.
 */
export function TestResult({ result }: { readonly result: ChannelTest }) {
  const { channels } = useTexts()
  return (
    <>
      <Outcome result={result} />
      {result.needs_repair && <small>{channels.testNeedsRepair}</small>}
      {result.costs && <small>{channels.testCost}</small>}
    </>
  )
}

function Outcome({ result: { success, message, time } }: { readonly result: ChannelTest }) {
  const { channels } = useTexts()
  const { count } = useFormatters()
  if (success === null) return <StateMark tone="off" word={channels.untestedInTime} />
  return success ? (
    <StateMark tone="ok" word={channels.answered(count(Math.max(0.01, Math.round(time * 100) / 100)))} />
  ) : (
    <StateMark
      tone="bad"
      word={channels.testFailed(message, channels.faults[channelFaultOf(message)])}
      title={message}
    />
  )
}
