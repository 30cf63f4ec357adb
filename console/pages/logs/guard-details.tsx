import { Link } from '@tanstack/react-router'
import type { CallDetail } from '../../api/calls.ts'
import { DetailList } from '../../components/detail-list.tsx'
import { VerdictMark } from '../../components/guard-verdicts.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { parseVerdicts } from '../../components/parse-verdicts.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** What guards decided about a call; shows nothing if no guard has checked it. */
export function GuardDetails({ call }: { readonly call: Pick<CallDetail, 'guards'> }) {
  const { guards: t } = useTexts()
  const { isAdmin } = useSignedInAccount()
  const verdicts = parseVerdicts(call.guards)
  if (verdicts.length === 0) return null
  return (
    <>
      <h3>{t.title}</h3>
      <DetailList
        areLabelsLong
        labelOf={(name) =>
          isAdmin ? (
            <Link to="/guards/$name" params={{ name }} aria-label={t.open(name)}>
              {name}
            </Link>
          ) : (
            name
          )
        }
        rows={verdicts.map(({ name, verdict, count }) => [
          name,
          <VerdictMark key={name} verdict={verdict} count={count} />,
        ])}
      />
    </>
  )
}
