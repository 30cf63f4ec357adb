import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { channelHealthQuery } from '../../api/channel-health.ts'
import { changeChannel, type Channel, channelQuery, createChannel } from '../../api/channels.ts'
import { AnswerOf } from '../../parts/answer-of.tsx'
import { say } from '../../parts/notify.tsx'
import { ChannelState } from '../../parts/channel-state.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Refusal } from '../../parts/refusal.tsx'
import { useSearchState } from '../../parts/search-state.ts'
import { useSignedIn } from '../../parts/session.tsx'
import { useAction } from '../../parts/use-action.ts'
import { useTexts } from '../../texts/use-texts.tsx'
import { channelFieldsOf, placeAtField, type TypedChannel, useChannelForm } from './channel-form.ts'
import { ChannelInputs } from './channel-inputs.tsx'
import { ChannelHealthText } from './channel-health-text.tsx'
import { TestButton } from './test-button.tsx'

const ENABLED = 1

/** A new channel. */
export function NewChannelPage() {
  const { channels, common } = useTexts()
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const navigate = useNavigate()
  const [search] = useSearchState()
  const form = useChannelForm(undefined)
  const saving = useAction(async (typed: TypedChannel) => {
    try {
      const id = await createChannel(channelFieldsOf(typed))
      await client.invalidateQueries({ queryKey: [profile.id, 'channels'] })
      say(channels.saved(typed.name))
      if (search['setup'] !== undefined) return navigate({ to: '/setup' })
      return navigate({ to: '/channels/$id', params: { id: String(id) } })
    } catch (error) {
      if (!placeAtField(error, form)) throw error
    }
  })
  return (
    <>
      <PageHead title={channels.add} above={<Link to="/channels">{channels.back}</Link>} />
      <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
        <ChannelInputs form={form} isNew />
        <Refusal error={saving.error} />
        <Group gap="sm">
          <Button type="submit" loading={saving.isRunning}>
            {channels.save}
          </Button>
          <Button variant="default" component={Link} to="/channels">
            {common.cancel}
          </Button>
        </Group>
      </form>
    </>
  )
}

/** An existing channel: its test and its fields. */
export function ChannelPage() {
  const { id = '' } = useParams({ strict: false })
  const { profile } = useSignedIn()
  return (
    <AnswerOf query={useQuery(channelQuery(profile.id, Number(id)))}>
      {(channel) => <OneChannel key={channel.id} channel={channel} />}
    </AnswerOf>
  )
}

function OneChannel({ channel }: { readonly channel: Channel }) {
  const { channels, common } = useTexts()
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const form = useChannelForm(channel)
  const { data: node } = useQuery(channelHealthQuery(profile.id))
  const health = node?.items.find(({ id }) => id === channel.id)
  const saving = useAction(async (typed: TypedChannel) => {
    try {
      await changeChannel(channel.id, channelFieldsOf(typed))
      await Promise.all(
        ['channels', 'channel'].map((name) => client.invalidateQueries({ queryKey: [profile.id, name] })),
      )
      form.setFieldValue('keys', '')
      form.resetDirty()
      say(channels.saved(typed.name))
    } catch (error) {
      if (!placeAtField(error, form)) throw error
    }
  })
  return (
    <>
      <PageHead
        title={channel.name}
        above={<Link to="/channels">{channels.back}</Link>}
        beside={<ChannelState isEnabled={channel.status === ENABLED} health={health} at={node?.at ?? 0} />}
      >
        <TestButton id={channel.id} label={channels.testConnection} />
      </PageHead>
      {health && node && <ChannelHealthText health={health} node={node.node} />}
      {channel.managed ? (
        <p>{channels.managedHint(channel.managed_by)}</p>
      ) : (
        <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
          <ChannelInputs form={form} isNew={false} />
          <Refusal error={saving.error} />
          <Button type="submit" loading={saving.isRunning} disabled={!form.isDirty()}>
            {common.saveChanges}
          </Button>
        </form>
      )}
    </>
  )
}
