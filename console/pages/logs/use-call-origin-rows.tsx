import { Link } from '@tanstack/react-router'
import type { CallDetail, RefusedCall } from '../../api/calls.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { DetailRows } from '../../components/detail-list.tsx'

/** A channel that was deleted has no page of its own; the list shows whether another has its name. */
function ChannelLink({ id, name }: { readonly id: number; readonly name: string }) {
  return id === 0 ? (
    <Link to="/channels" search={{ q: name }}>
      {name}
    </Link>
  ) : (
    <Link to="/channels/$id" params={{ id: String(id) }}>
      {name}
    </Link>
  )
}

/** Key, user and channel of a call, with links to their pages. */
export function useCallOriginRows(call: CallDetail | RefusedCall): DetailRows {
  const { logs } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { token_id, token_name, user_id, username } = call
  const channel = 'channel' in call ? (call.channel ?? '') : ''
  const user = { id: String(user_id) }
  const keyLink =
    user_id === profile.id ? (
      <Link to="/keys/$id" params={{ id: String(token_id) }}>
        {token_name}
      </Link>
    ) : (
      <Link to="/users/$id/keys/$key" params={{ ...user, key: String(token_id) }}>
        {token_name}
      </Link>
    )
  return [
    [logs.key, token_name === '' || token_id === 0 ? token_name : keyLink],
    [
      logs.user,
      isAdmin && user_id !== 0 ? (
        <Link to="/users/$id" params={user}>
          {username}
        </Link>
      ) : (
        username
      ),
    ],
    [
      logs.channel,
      channel === '' ? (
        ''
      ) : (
        <ChannelLink id={'channel_id' in call ? Number(call.channel_id) : 0} name={channel} />
      ),
    ],
  ]
}
