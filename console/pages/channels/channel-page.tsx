import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { channelHealthQuery } from '../../api/channel-health.ts'
import {
  changeChannel,
  type Channel,
  channelQuery,
  type ChannelTest,
  createChannel,
} from '../../api/channels.ts'
import { reloadChannels } from '../../components/channel-actions.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { showNotice } from '../../components/notify.tsx'
import { ChannelState } from '../../components/channel-state.tsx'
import { focusInvalid } from '../../components/focus-invalid.ts'
import { ObjectNotFound } from '../../components/object-not-found.tsx'
import { ConfirmLeave } from '../../components/confirm-leave.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PageHint } from '../../components/page-section.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  channelFieldsOf,
  showErrorAtField,
  channelFormValues,
  type ChannelFormValues,
  useChannelForm,
} from './channel-form.ts'
import { channelLabels, channelWords } from './channel-labels.ts'
import { ChannelKeys } from './channel-keys.tsx'
import { ChannelInputs } from './channel-inputs.tsx'
import { ChannelHealthText } from './channel-health-text.tsx'
import { HEALTH_INTERVAL_MS } from './hour-sums.ts'
import { TestButton, TestResultLine } from './test-button.tsx'
import { TestUnsavedChannel } from './test-unsaved-channel.tsx'

const ENABLED = 1

export function NewChannelPage() {
  const { channels, common } = useTexts()
  const client = useQueryClient()
  const navigate = useNavigate()
  const [search] = useSearchState()
  const form = useChannelForm(undefined)
  const element = useRef<HTMLFormElement>(null)
  const saving = useAction(async (typed: ChannelFormValues) => {
    try {
      const id = await createChannel(channelFieldsOf(typed))
      await reloadChannels(client)
      showNotice(channels.saved(typed.name))
      if (search['setup'] !== undefined) return navigate({ to: '/setup', ignoreBlocker: true })
      return navigate({ to: '/channels/$id', params: { id: String(id) }, ignoreBlocker: true })
    } catch (error) {
      if (showErrorAtField(error, form) === undefined) throw error
      focusInvalid(element.current)
    }
  })
  return (
    <>
      <PageHead title={channels.add} above={<Link to="/channels">{channels.back}</Link>} />
      <form
        ref={element}
        noValidate
        onSubmit={form.onSubmit(
          (typed) => void saving.run(typed),
          () => focusInvalid(element.current),
        )}
      >
        <ChannelInputs form={form} id={undefined} />
        <ConfirmLeave isChanged={form.isDirty()} />
        <RefusalMessage error={saving.error} />
        <Group gap="sm">
          <Button type="submit" loading={saving.isRunning}>
            {channels.save}
          </Button>
          <TestUnsavedChannel form={form} id={undefined} />
          <Button variant="subtle" component={Link} to="/channels">
            {common.cancel}
          </Button>
        </Group>
      </form>
    </>
  )
}

/** The page of an existing channel: its test and its fields. */
export function ChannelPage() {
  const { id = '' } = useParams({ strict: false })
  const { channels } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult
      query={useQuery(channelQuery(profile.id, Number(id)))}
      gone={<ObjectNotFound text={channels.gone} to="/channels" label={channels.back} />}
    >
      {(channel) => <OneChannel key={channel.id} channel={channel} />}
    </QueryResult>
  )
}

function OneChannel({ channel }: { readonly channel: Channel }) {
  const { channels } = useTexts()
  const { profile, isRoot } = useSignedInAccount()
  const { data: node } = useQuery(channelHealthQuery(profile.id, HEALTH_INTERVAL_MS))
  const [result, setResult] = useState<ChannelTest>()
  const health = node?.items.find(({ id }) => id === channel.id)
  return (
    <>
      <PageHead
        title={channel.name}
        above={<Link to="/channels">{channels.back}</Link>}
        beside={<ChannelState isEnabled={channel.status === ENABLED} health={health} at={node?.at ?? 0} />}
      >
        {channel.managed && (
          <TestButton channel={channel} label={channels.testConnection} onResult={setResult} />
        )}
      </PageHead>
      {result && <TestResultLine result={result} onClose={() => setResult(undefined)} />}
      {health && node && <ChannelHealthText health={health} node={node.node} />}
      {isRoot && <ChannelKeys channel={channel} />}
      {channel.managed ? (
        <PageHint>{channels.managedHint(channel.managed_by)}</PageHint>
      ) : (
        <ChannelFieldsForm channel={channel} />
      )}
    </>
  )
}

function ChannelFieldsForm({ channel }: { readonly channel: Channel }) {
  const texts = useTexts()
  const { channels, common } = texts
  const client = useQueryClient()
  const form = useChannelForm(channel)
  const element = useRef<HTMLFormElement>(null)
  const edit = useMergedEdit<ChannelFormValues, Channel>({
    form,
    object: channel,
    typedOf: channelFormValues,
    labels: channelLabels(texts),
    words: channelWords(texts),
    save: (typed, version) => changeChannel(channel.id, { ...channelFieldsOf(typed), version }),
    reload: () => reloadChannels(client),
    saved: ({ name }) => channels.saved(name),
    showAtField(error) {
      focusInvalid(element.current)
      return showErrorAtField(error, form) !== undefined
    },
  })
  return (
    <form ref={element} noValidate onSubmit={form.onSubmit(edit.save, () => focusInvalid(element.current))}>
      <ChannelInputs form={form} id={channel.id} />
      <RefusalMessage error={edit.error} />
      <Group gap="sm">
        <Button type="submit" loading={edit.isSaving} disabled={!form.isDirty()}>
          {common.saveChanges}
        </Button>
        <TestUnsavedChannel form={form} id={channel.id} />
      </Group>
      <ConfirmLeave isChanged={form.isDirty()} />
      {edit.conflict}
    </form>
  )
}
