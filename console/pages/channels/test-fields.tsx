import { Button } from '@mantine/core'
import { useState } from 'react'
import { type ChannelTest, testFields } from '../../api/channels.ts'
import { Refusal } from '../../components/refusal.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { type ChannelForm, channelFieldsOf, showAtField } from './channel-form.ts'
import classes from './channels-page.module.css'
import { TestResult } from './test-button.tsx'

/** Tests a channel with the typed values: nothing is saved, and saving does not wait for the test. */
export function TestFields({ form, id }: { readonly form: ChannelForm; readonly id: number | undefined }) {
  const { channels } = useTexts()
  const [result, setResult] = useState<ChannelTest>()
  const testing = useAction(async () => {
    setResult(undefined)
    if (form.validate().hasErrors) return
    try {
      setResult(await testFields(channelFieldsOf(form.values), id))
    } catch (error) {
      if (!showAtField(error, form)) throw error
    }
  })
  return (
    <>
      <Button variant="default" loading={testing.isRunning} onClick={() => void testing.run()}>
        {channels.testConnection}
      </Button>
      <span role="status" aria-label={channels.testResult} className={classes['outcome']}>
        {testing.isRunning && channels.testing}
        {!testing.isRunning && !result && channels.untestedHint}
        {result && <TestResult result={result} />}
      </span>
      <Refusal error={testing.error} />
    </>
  )
}
