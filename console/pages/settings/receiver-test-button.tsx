import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type ReceiverTest, receiversQuery, testReceiver } from '../../api/alerts.ts'
import { showFailure } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Sends a test event to a receiver, and shows its response. */
export function ReceiverTestButton({ id, size }: { readonly id: string; readonly size: 'xs' | 'sm' }) {
  const texts = useTexts()
  const { alerts } = texts.settings
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [result, setResult] = useState<ReceiverTest>()
  const [isRunning, setIsRunning] = useState(false)
  const send = async (): Promise<void> => {
    setIsRunning(true)
    try {
      setResult(await testReceiver(id))
      await client.invalidateQueries({ queryKey: receiversQuery(profile.id).queryKey })
    } catch (error) {
      showFailure(error, texts)
    } finally {
      setIsRunning(false)
    }
  }
  return (
    <>
      <span role="status">
        {result &&
          (result.success ? alerts.answered(String(result.status), String(result.time)) : result.message)}
      </span>
      <Button variant="default" size={size} loading={isRunning} onClick={() => void send()}>
        {alerts.test}
      </Button>
    </>
  )
}
