import { Button } from '@mantine/core'
import { useRef, useState } from 'react'
import { type ChannelTest, testUnsavedChannel } from '../../api/channels.ts'
import { focusInvalid } from '../../components/focus-invalid.ts'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { channelLabels } from './channel-labels.ts'
import {
  type ChannelForm,
  channelFieldsOf,
  showErrorAtField,
  type ChannelFormValues,
} from './channel-form.ts'
import classes from './channels-page.module.css'
import { TestResult } from './test-button.tsx'

/** The name that is sent with the test of a channel without a name, because the gateway requires one. */
const UNNAMED = 'unnamed'

/** Tests a channel with the typed values: nothing is saved, and saving does not wait for the test. */
export function TestUnsavedChannel({
  form,
  id,
}: {
  readonly form: ChannelForm
  readonly id: number | undefined
}) {
  const texts = useTexts()
  const { channels } = texts
  const button = useRef<HTMLButtonElement>(null)
  const [result, setResult] = useState<ChannelTest>()
  const [invalid, setInvalid] = useState<string>()
  const labels: Readonly<Record<string, string>> = channelLabels(texts)
  const refuse = (field: string, error: unknown): void => {
    setInvalid(channels.notTested(labels[field] ?? field, String(error)))
    focusInvalid(button.current?.form)
  }
  const testing = useAction(async () => {
    setResult(undefined)
    setInvalid(undefined)
    // A channel needs no name to be tested.
    form.clearFieldError('name')
    const typed: ChannelFormValues = { ...form.getValues(), name: form.getValues().name.trim() || UNNAMED }
    for (const field of Object.keys(typed).filter((name) => name !== 'name')) {
      const { hasError, error } = form.validateField(field)
      if (hasError) return refuse(field, error)
    }
    try {
      setResult(await testUnsavedChannel(channelFieldsOf(typed), id))
    } catch (error) {
      const field = showErrorAtField(error, form)
      if (field === undefined) throw error
      refuse(field, (error as Error).message)
    }
  })
  return (
    <>
      <Button ref={button} variant="default" loading={testing.isRunning} onClick={() => void testing.run()}>
        {channels.testConnection}
      </Button>
      <span role="status" aria-label={channels.testResult} className={classes['outcome']}>
        {testing.isRunning && channels.testing}
        {!testing.isRunning && !result && (invalid ?? channels.untestedHint)}
        {result && <TestResult result={result} />}
      </span>
      <RefusalMessage error={testing.error} />
    </>
  )
}
