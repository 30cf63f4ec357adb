import { Button, Group } from '@mantine/core'
import { useState } from 'react'
import { fetchModels } from '../../api/channels.ts'
import { Refusal } from '../../components/refusal.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { type ChannelForm, channelFieldsOf, showAtField } from './channel-form.ts'

/** Requests the upstream's models and adds all of them; the user removes those that are not wanted. */
export function FetchModels({
  form,
  id,
  onFetched,
}: {
  readonly form: ChannelForm
  readonly id: number | undefined
  readonly onFetched: (names: readonly string[]) => void
}) {
  const { channels } = useTexts()
  const [count, setCount] = useState<number>()
  const fetching = useAction(async () => {
    setCount(undefined)
    try {
      const names = await fetchModels(channelFieldsOf(form.getValues()), id)
      onFetched(names)
      setCount(names.length)
      form.setFieldValue('models', [...new Set([...form.getValues().models, ...names])])
    } catch (error) {
      if (!showAtField(error, form)) throw error
    }
  })
  return (
    <>
      <Group gap="sm">
        <Button variant="default" loading={fetching.isRunning} onClick={() => void fetching.run()}>
          {channels.fetchModels}
        </Button>
        <span role="status">{count !== undefined && channels.fetched(count)}</span>
      </Group>
      <Refusal error={fetching.error} />
    </>
  )
}
