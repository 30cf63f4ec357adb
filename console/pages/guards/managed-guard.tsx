import type { Guard } from '../../api/guards.ts'
import { DetailList } from '../../components/detail-list.tsx'
import { PageHint } from '../../components/page-section.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { GUARD_SCOPES } from './guard-form.ts'
import { kindOfMatch, matchSummary } from './match-forms.ts'

/** Shows a guard from gateway.yaml, which can only be changed in that file. */
export function ManagedGuard({ guard }: { readonly guard: Guard }) {
  const texts = useTexts()
  const { guards: t, common } = texts
  const { percent } = useFormatters()
  const kinds: Readonly<Record<string, string>> = t.kinds
  const kind = kindOfMatch(guard.match)
  return (
    <>
      <PageHint>{t.managedHint(guard.managed_by)}</PageHint>
      <DetailList
        rows={[
          [t.do, t.actions[guard.do]],
          [t.with, guard.do === 'redact' ? guard.with : ''],
          [t.where, guard.where.map((place) => t.places[place]).join(common.comma)],
          [t.kind, kinds[kind] ?? kind],
          [t.match, matchSummary(guard.match, texts)],
          ...GUARD_SCOPES.map(
            (scope) => [t.scopeNames[scope], guard[scope]?.join(common.comma) ?? t.all] as const,
          ),
          [t.sample, percent(guard.sample)],
        ]}
      />
    </>
  )
}
