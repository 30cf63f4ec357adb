import { ActionIcon, Button, Drawer } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconMenu2 } from '@tabler/icons-react'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Suspense, useEffect, useRef, useState } from 'react'
import { setPreferences, usePreferences } from '../components/preferences.ts'
import { useSignedInAccount } from '../components/session.tsx'
import { writeTabStorage, readTabStorage } from '../components/tab-storage.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { Incidents } from './incidents.tsx'
import { Palette } from './palette.tsx'
import { NavigationRail } from './navigation-rail.tsx'
import { preloadSignInAgainDialog } from './ended-session-dialog.tsx'
import classes from './app-frame.module.css'
import { ShortcutsDialog } from './shortcuts-dialog.tsx'
import { useShortcuts } from './use-shortcuts.ts'

/** The frame around all pages after the sign-in: navigation, command palette and shortcuts. */
export function AppFrame() {
  const { shell, product, common } = useTexts()
  const [isMenuOpen, menu] = useDisclosure()
  const [isPaletteOpen, palette] = useDisclosure()
  const [isHelpOpen, help] = useDisclosure()
  const main = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  const { isRailFolded } = usePreferences()
  const shown = useRef(pathname)
  useEffect(preloadSignInAgainDialog, [])
  useShortcuts({ openPalette: palette.open, openHelp: help.open })
  useEffect(() => {
    menu.close()
    // On a new page, the focus moves to the beginning. A panel opened over the same page does not count as a
    // new page.
    if (pathname.split('/')[1] !== shown.current.split('/')[1]) main.current?.focus({ preventScroll: true })
    shown.current = pathname
  }, [pathname])
  return (
    <div className={classes['frame']} data-folded={isRailFolded || undefined}>
      <a className={classes['skip']} href="#main">
        {shell.skip}
      </a>
      <div className={classes['rail']}>
        <NavigationRail
          onSearch={palette.open}
          isFolded={isRailFolded}
          onFold={() => setPreferences({ isRailFolded: !isRailFolded })}
        />
      </div>
      <div className={classes['bar']}>
        <ActionIcon aria-label={shell.openMenu} aria-expanded={isMenuOpen} onClick={menu.open}>
          <IconMenu2 size={20} />
        </ActionIcon>
        <span>{product}</span>
      </div>
      <Drawer
        opened={isMenuOpen}
        onClose={menu.close}
        size="280px"
        padding={0}
        title={product}
        classNames={{ header: classes['drawer-head'], body: classes['drawer-body'] }}
        closeButtonProps={{ 'aria-label': common.close }}
      >
        <NavigationRail onSearch={palette.open} isNamed={false} />
      </Drawer>
      <main id="main" ref={main} tabIndex={-1} className={classes['main']}>
        <PasswordOffer />
        <Incidents />
        <Suspense>
          <Outlet />
        </Suspense>
      </main>
      <Palette opened={isPaletteOpen} onClose={palette.close} onHelp={help.open} />
      <ShortcutsDialog opened={isHelpOpen} onClose={help.close} />
    </div>
  )
}

/** The entry in the tab's storage that hides the offer to set a password until the user signs out. */
const OFFER_CLOSED = 'password-offer-closed'

/** Offers to set a password if root has none, because its access token is shown only once. */
function PasswordOffer() {
  const { shell } = useTexts()
  const { profile, isRoot } = useSignedInAccount()
  const [isClosed, setIsClosed] = useState(() => readTabStorage(OFFER_CLOSED) !== '')
  const close = (): void => {
    writeTabStorage(OFFER_CLOSED, '1')
    setIsClosed(true)
  }
  return (
    <div role="status" className={classes['offer']}>
      {isRoot && !profile.has_password && !profile.oidc_id && !isClosed && (
        <>
          {shell.setPasswordHint} <Link to="/account">{shell.setPassword}</Link>{' '}
          <Button variant="subtle" size="compact-sm" onClick={close}>
            {shell.notNow}
          </Button>
        </>
      )}
    </div>
  )
}
