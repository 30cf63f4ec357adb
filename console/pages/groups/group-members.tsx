import { Box } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { groupMembersQuery, type ManagedGroup } from '../../api/groups.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** The members of a group, the newest first, and the models that its channels serve. */
export function GroupMembers({ group }: { readonly group: ManagedGroup }) {
  const { groups, common } = useTexts()
  const { profile } = useSignedInAccount()
  const { data } = useQuery(groupMembersQuery(profile.id, group.group))
  const more = (data?.total ?? 0) - (data?.items.length ?? 0)
  return (
    <>
      <Box component="section" mt="lg" aria-label={groups.members}>
        <h2>{groups.members}</h2>
        <p>
          {data?.total === 0 && groups.noMembers}
          {data?.items.map(({ id, username }, index) => (
            <span key={id}>
              {index > 0 && ', '}
              <Link to="/users/$id" params={{ id: String(id) }}>
                {username}
              </Link>
            </span>
          ))}
          {more > 0 && ` ${groups.more(more)}`}
        </p>
      </Box>
      <Box component="section" mt="lg" aria-label={groups.models}>
        <h2>{groups.models}</h2>
        <p>{group.models.length > 0 ? group.models.join(', ') : common.none}</p>
      </Box>
    </>
  )
}
