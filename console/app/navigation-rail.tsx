import { ActionIcon, UnstyledButton } from '@mantine/core'
import { IconLayoutSidebarLeftCollapse, IconLayoutSidebarLeftExpand, IconSearch } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { Role } from '../../src/domain/role.ts'
import { useSignedInAccount } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { AccountMenu, LanguageMenu, ThemeMenu } from './menus.tsx'
import { type Page, pagesForRole, pageTitle } from './pages.ts'
import classes from './navigation-rail.module.css'

/** The navigation: the pages for this role, and the menus of the account. */
export function NavigationRail({
  onSearch,
  isNamed = true,
  isFolded = false,
  onFold,
}: {
  readonly onSearch: () => void
  /** Whether only icons are shown, with the labels in tooltips and for screen readers. */
  readonly isFolded?: boolean
  readonly onFold?: () => void
  /** Whether the product's name is shown at the top. */
  readonly isNamed?: boolean
}) {
  const { shell, product } = useTexts()
  const { profile, version } = useSignedInAccount()
  const allowed = pagesForRole(profile.role)
  const operated = allowed.filter(({ role }) => role > Role.user)
  return (
    <div className={classes['rail']} data-folded={isFolded || undefined}>
      {isNamed && (
        <div className={classes['product']}>
          <Logo />
          <strong>{product}</strong>
          <small title={version}>{version}</small>
        </div>
      )}
      <UnstyledButton
        className={classes['search']}
        onClick={onSearch}
        {...(isFolded && { title: shell.search })}
      >
        <IconSearch size={16} aria-hidden />
        <span>{shell.search}</span>
        <kbd aria-hidden>{shell.searchKeys}</kbd>
      </UnstyledButton>
      <nav aria-label={shell.main}>
        <ul>
          {allowed
            .filter(({ role }) => role === Role.user)
            .map((page) => (
              <RailLink key={page.name} page={page} isFolded={isFolded} />
            ))}
        </ul>
        {operated.length > 0 && (
          <>
            <div className={classes['group']} id="operate">
              <span>{shell.operate}</span>
            </div>
            <ul aria-labelledby="operate">
              {operated.map((page) => (
                <RailLink key={page.name} page={page} isFolded={isFolded} />
              ))}
            </ul>
          </>
        )}
      </nav>
      <div className={classes['foot']}>
        <AccountMenu />
        <ThemeMenu />
        <LanguageMenu />
        {onFold && (
          <ActionIcon
            aria-label={shell.fold}
            title={isFolded ? shell.unfold : shell.fold}
            aria-pressed={isFolded}
            onClick={onFold}
          >
            {isFolded ? (
              <IconLayoutSidebarLeftExpand size={18} stroke={1.6} />
            ) : (
              <IconLayoutSidebarLeftCollapse size={18} stroke={1.6} />
            )}
          </ActionIcon>
        )}
      </div>
    </div>
  )
}

function RailLink({ page, isFolded }: { readonly page: Page; readonly isFolded: boolean }) {
  const texts = useTexts()
  const { icon: Icon, path, name } = page
  return (
    <li>
      <Link
        to={path}
        activeOptions={{ exact: path === '/', includeSearch: false }}
        className={classes['link']}
        {...(isFolded && { title: pageTitle(name, texts) })}
      >
        <Icon size={18} stroke={1.6} aria-hidden />
        <span>{pageTitle(name, texts)}</span>
      </Link>
    </li>
  )
}

/** The logo: a gate in running water, in two strokes. */
function Logo() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden className={classes['logo']}>
      <path d="M4 2v14M14 2v14M4 6h10" />
      <path d="M1 12c2-2 4-2 5.500 0s3.500 2 5 0 3.500-2 5.500 0" data-water />
    </svg>
  )
}
