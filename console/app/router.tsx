import { createRootRoute, createRoute, createRouter, Outlet, redirect } from '@tanstack/react-router'
import { Role } from '../../src/domain/role.ts'
import { ApiError } from '../api/api-error.ts'
import { appShellQuery } from '../api/account.ts'
import { basePath } from '../api/base-path.ts'
import { isConsolePath } from '../components/console-path.ts'
import { preferences, setPreferences } from '../components/preferences.ts'
import { recordAccount } from '../components/session-recovery.ts'
import { RequireRole } from './require-role.tsx'
import { lazyPage } from './lazy-page.ts'
import { LoadFailed, NotFound } from './load-failed.tsx'
import { queryClient } from './query-client.ts'

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound, errorComponent: LoadFailed })

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  component: lazyPage(async () => (await import('../pages/login/login-page.tsx')).LoginPage),
})

const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invite',
  component: lazyPage(async () => (await import('../pages/login/invite-page.tsx')).InvitePage),
})

const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  component: lazyPage(async () => (await import('./app-frame.tsx')).AppFrame),
  beforeLoad: async ({ location }) => {
    try {
      const { user } = await queryClient.ensureQueryData(appShellQuery)
      recordAccount(user.id)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      const next = isConsolePath(location.href) && location.href !== '/' ? { next: location.href } : {}
      throw redirect({ to: '/login', search: next })
    }
  },
})

const member = createRoute({ getParentRoute: () => signedIn, id: 'member', component: Outlet })

const admin = createRoute({
  getParentRoute: () => signedIn,
  id: 'admin',
  component: () => <RequireRole role={Role.admin} />,
})

const rootOnly = createRoute({
  getParentRoute: () => signedIn,
  id: 'root',
  component: () => <RequireRole role={Role.root} />,
})

/**
 * The page with the list of calls. It stays open behind the details of a call, so that the list keeps its
 * scroll position.
 */
const logs = createRoute({
  getParentRoute: () => member,
  path: '/logs',
  component: lazyPage(async () => (await import('../pages/logs/logs-page.tsx')).LogsPage),
})

const ofMembers = [
  createRoute({
    getParentRoute: () => member,
    path: '/',
    beforeLoad: beginSetup,
    component: lazyPage(async () => (await import('../pages/overview/overview-page.tsx')).OverviewPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/keys',
    component: lazyPage(async () => (await import('../pages/keys/keys-page.tsx')).KeysPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/keys/$id',
    component: lazyPage(async () => (await import('../pages/keys/key-page.tsx')).KeyPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/playground',
    component: lazyPage(async () => (await import('../pages/playground/playground-page.tsx')).PlaygroundPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/usage',
    component: lazyPage(async () => (await import('../pages/usage/usage-page.tsx')).UsagePage),
  }),
  logs.addChildren([createRoute({ getParentRoute: () => logs, path: '$id', component: () => null })]),
  createRoute({
    getParentRoute: () => member,
    path: '/sessions',
    component: lazyPage(async () => (await import('../pages/sessions/sessions-page.tsx')).SessionsPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/sessions/$id',
    component: lazyPage(async () => (await import('../pages/sessions/session-page.tsx')).SessionPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/batches',
    component: lazyPage(async () => (await import('../pages/batches/batches-page.tsx')).BatchesPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/batches/$id',
    component: lazyPage(async () => (await import('../pages/batches/batch-page.tsx')).BatchPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/models',
    component: lazyPage(async () => (await import('../pages/models/models-page.tsx')).ModelsPage),
  }),
  createRoute({
    getParentRoute: () => member,
    path: '/account',
    component: lazyPage(async () => (await import('../pages/account/account-page.tsx')).AccountPage),
  }),
]

const ofAdmins = [
  createRoute({
    getParentRoute: () => admin,
    path: '/what-if',
    component: lazyPage(async () => (await import('../pages/what-if/what-if-page.tsx')).WhatIfPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/live',
    component: lazyPage(async () => (await import('../pages/live/live-page.tsx')).LivePage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/channels',
    component: lazyPage(async () => (await import('../pages/channels/channels-page.tsx')).ChannelsPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/channels/new',
    component: lazyPage(async () => (await import('../pages/channels/channel-page.tsx')).NewChannelPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/channels/$id',
    component: lazyPage(async () => (await import('../pages/channels/channel-page.tsx')).ChannelPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/routing',
    component: lazyPage(async () => (await import('../pages/routing/routing-page.tsx')).RoutingPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/guards',
    component: lazyPage(async () => (await import('../pages/guards/guards-page.tsx')).GuardsPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/guards/$name',
    component: lazyPage(async () => (await import('../pages/guards/guard-page.tsx')).GuardPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/tools',
    component: lazyPage(async () => (await import('../pages/tools/tools-page.tsx')).ToolsPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/users',
    component: lazyPage(async () => (await import('../pages/users/users-page.tsx')).UsersPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/users/$id',
    component: lazyPage(async () => (await import('../pages/users/user-page.tsx')).UserPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/users/$id/keys/$key',
    component: lazyPage(async () => (await import('../pages/keys/key-page.tsx')).UserKeyPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/groups',
    component: lazyPage(async () => (await import('../pages/groups/groups-page.tsx')).GroupsPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/user-keys',
    component: lazyPage(async () => (await import('../pages/keys/keys-of-all-page.tsx')).KeysOfAllPage),
  }),
  createRoute({
    getParentRoute: () => admin,
    path: '/audit',
    component: lazyPage(async () => (await import('../pages/audit/audit-page.tsx')).AuditPage),
  }),
]

/** Maximum age, in milliseconds, of a response that is used instead of a new request. */
const JUST_ASKED_MS = 1000

/**
 * Leads root to the setup page while no channel exists. Until there is a channel, each visit checks again.
 */
async function beginSetup(): Promise<void> {
  const { user } = await queryClient.ensureQueryData(appShellQuery)
  if (user.role < Role.root || preferences().isSetUp) return
  const now = await queryClient
    .fetchQuery({ ...appShellQuery, staleTime: JUST_ASKED_MS })
    .catch(() => undefined)
  if (!now) return
  if (!now.setup.has_channel) throw redirect({ to: '/setup' })
  setPreferences({ isSetUp: true })
}

const ofRoot = [
  createRoute({
    getParentRoute: () => rootOnly,
    path: '/setup',
    component: lazyPage(async () => (await import('../pages/setup/setup-page.tsx')).SetupPage),
  }),
  createRoute({
    getParentRoute: () => rootOnly,
    path: '/settings',
    component: lazyPage(async () => (await import('../pages/settings/settings-page.tsx')).SettingsPage),
  }),
  createRoute({
    getParentRoute: () => rootOnly,
    path: '/import',
    component: lazyPage(async () => (await import('../pages/import/import-page.tsx')).ImportPage),
  }),
]

/**
 * The paths of the console, the same as in `src/console/console.ts`. The code of a page is loaded when it is
 * opened.
 */
export const router = createRouter({
  routeTree: root.addChildren([
    login,
    invitation,
    signedIn.addChildren([
      member.addChildren(ofMembers),
      admin.addChildren(ofAdmins),
      rootOnly.addChildren(ofRoot),
    ]),
  ]),
  basepath: basePath || '/',
  defaultPreload: 'intent',
  // Parameters stay texts: an id that consists of digits must not become a number.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
    return text === '' ? '' : `?${text}`
  },
})
